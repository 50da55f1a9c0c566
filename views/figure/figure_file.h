// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure.h"

#include <QStringList>
#include <QWidget>

class QComboBox;
class QLineEdit;

namespace ponderscope {

/// The file that a figure goes to: its name, its format, and the writing. Figure, numbers and specification
/// (FILE.json) stand beside each other; files of another figure are not replaced unasked.
class FigureFile : public QWidget {
    Q_OBJECT
public:
    explicit FigureFile(QWidget* parent = nullptr);

    [[nodiscard]] QString file() const;
    void setFile(const QString& file);
    /// A free name of the figure kind: beside \p trace, or with \p trace empty where the file is now.
    void setFreeName(const QString& kind, const QString& trace = {});
    /// Files that writing would replace and that are not of this very figure.
    [[nodiscard]] QStringList inTheWay(const figure::FigureSpec& spec) const;
    /// Writes, perhaps under another name that the user chose. Nothing: the user cancelled. InputError.
    QStringList askAndWrite(const figure::FigureSpec& spec, const figure::Figure& made,
                            const figure::Fonts& fonts);
    /// InputError: a file cannot be written, or is of another figure and \p replace does not say so.
    QStringList write(const figure::FigureSpec& spec, const figure::Figure& made, const figure::Fonts& fonts,
                      bool replace);

Q_SIGNALS:
    void changed();

private:
    void choose();

    QLineEdit* file_;
    QComboBox* format_;
};

} // namespace ponderscope

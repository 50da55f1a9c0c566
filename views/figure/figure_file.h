// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure.h"

#include <QStringList>
#include <QWidget>

class QComboBox;
class QLineEdit;

namespace ponderscope {

/// The output file of a figure: chooses its name and format, and writes it. Figure, numbers and specification
/// (FILE.json) are in one folder. Asks before it replaces files of another figure.
class FigureFile : public QWidget {
    Q_OBJECT
public:
    explicit FigureFile(QWidget* parent = nullptr);

    [[nodiscard]] QString file() const;
    void setFile(const QString& file);
    /// Sets an unused name for the figure kind, beside \p trace or (if empty) in the folder of file().
    void setFreeName(const QString& kind, const QString& trace = {});
    /// Existing files of another figure that writing would replace.
    [[nodiscard]] QStringList inTheWay(const figure::FigureSpec& spec) const;
    /// Writes the files, possibly under another name. Empty: cancelled. Throws the errors of write_figure.
    QStringList write(const figure::FigureSpec& spec, const figure::Figure& made, const figure::Fonts& fonts);

Q_SIGNALS:
    void changed();

private:
    void choose();

    QLineEdit* file_;
    QComboBox* format_;
};

} // namespace ponderscope

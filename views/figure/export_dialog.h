// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/figure/preview.h"
#include "views/figure/spec.h"

#include <QDialog>
#include <QStringList>
#include <QTimer>

class QCheckBox;
class QComboBox;
class QDialogButtonBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace ponderscope {

/// "Export figure…": kind, what it shows, tokens, width and file, with the figure itself beside them at true
/// size. Writes the figure, its numbers as CSV and the specification that makes it again (FILE.json).
class ExportDialog : public QDialog {
    Q_OBJECT
public:
    /// \p initial: what the window shows; its runs stay as they are. Needs an open trace.
    ExportDialog(ViewContext context, figure::FigureSpec initial, QWidget* parent = nullptr);

    [[nodiscard]] figure::FigureSpec spec() const;
    [[nodiscard]] QString file() const;
    void setFile(const QString& file);
    [[nodiscard]] figure::FigureMaker& maker() { return maker_; }
    /// Writes figure, numbers and specification; true when all are on disk. What went wrong is shown in the
    /// dialog.
    bool write();
    [[nodiscard]] QString message() const;

signals:
    void exported(const QStringList& files);

private:
    void fillChoices(); ///< quantities or signals, as the kind has it
    void changed();
    void kindChanged();
    void chooseFile();
    [[nodiscard]] figure::FigureKind kind() const;
    [[nodiscard]] QString suffix() const;

    TraceData& data_;
    figure::FigureSpec initial_;
    figure::FigureMaker maker_;
    QComboBox* kind_;
    QComboBox* shown_;
    QSpinBox* first_;
    QSpinBox* last_;
    QComboBox* width_;
    QComboBox* format_;
    QCheckBox* extra_; ///< step ticks, or the scatter
    QLineEdit* file_;
    QLabel* message_;
    figure::FigurePreview* preview_;
    QDialogButtonBox* buttons_;
    QTimer pending_;
};

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/figure/preview.h"
#include "views/figure/spec.h"

#include <QDialog>
#include <QStringList>
#include <QTimer>

#include <vector>

class QCheckBox;
class QComboBox;
class QDialogButtonBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;

namespace ponderscope {

class CommandLine;
class FigureGallery;

/// The figure workbench: a gallery of all kinds with examples of the run at hand, the runs that a figure
/// shows, what it shows of them, its look, and the figure itself at true size; a look at it in grey and as
/// deuteranopes see it; several figures on one page. Fields that mean nothing to a kind are grey, and their
/// tooltips say why. Writes the figure, its numbers as CSV and the specification that makes it again
/// (FILE.json), shows the command line that does, and stays open for the next one.
class ExportDialog : public QDialog {
    Q_OBJECT
public:
    /// \p initial: what the window shows, its first run A and its second B. Needs an open trace.
    ExportDialog(ViewContext context, figure::FigureSpec initial, QWidget* parent = nullptr);

    [[nodiscard]] figure::FigureSpec spec() const;
    [[nodiscard]] QString file() const;
    void setFile(const QString& file);
    [[nodiscard]] figure::FigureMaker& maker() { return maker_; }
    /// Writes figure, numbers and specification; true when all are on disk. What went wrong is shown in the
    /// dialog: other figures of these names are not replaced unless \p replace says so.
    bool write(bool replace = false);
    /// Files that writing would replace and that are not of this very figure.
    [[nodiscard]] QStringList inTheWay() const;
    /// Opens a specification: its kind, its runs and its look. False, having said why, when that is
    /// impossible.
    bool openSpec(const QString& file);
    [[nodiscard]] QString message() const;
    [[nodiscard]] QString commandLine() const;
    /// What makes the figure with nothing but the trace, exported or not.
    [[nodiscard]] QString copiedCommand() const;
    [[nodiscard]] FigureGallery* gallery() const { return gallery_; }
    [[nodiscard]] QListWidget* runs() const { return runs_; }
    [[nodiscard]] QListWidget* entries() const { return entries_; }
    [[nodiscard]] figure::FigurePreview* preview() const { return preview_; }
    void setKind(figure::FigureKind kind);
    /// Puts the figure that is shown on the page of panels.
    void addPanel();

Q_SIGNALS:
    void exported(const QStringList& files);

private:
    [[nodiscard]] std::vector<std::int64_t> coloursOf(const std::vector<figure::RunName>& runs) const;
    [[nodiscard]] QWidget* buildForm();
    void buildTokenRange();
    void buildList(QListWidget& list, const QString& name, const QString& tip);
    [[nodiscard]] QWidget* limits(QLineEdit*& low, QLineEdit*& high, const QString& name);
    void fillRuns();
    void fillEntries(); ///< of the figure that was made
    void apply(const figure::FigureSpec& spec);
    /// Grey with a reason, or not: a field and its label.
    void allow(QWidget* field, const QString& reason);
    void showApplicable();
    void askAndWrite();
    [[nodiscard]] QString freeName(const QString& file) const;
    [[nodiscard]] bool entriesMoved() const; ///< from the order that the figure gave them
    void fillChoices();                      ///< quantities, signals or groups, as the kind has it
    void changed();
    void make();
    void showCommand();
    void kindChanged();
    void chooseFile();
    void arrived();
    [[nodiscard]] bool reads(std::string_view key) const; ///< the kind does
    [[nodiscard]] figure::FigureKind kind() const;
    [[nodiscard]] QString suffix() const;

    TraceData& data_;
    Selection& selection_;
    Theme& windowTheme_;
    figure::FigureSpec initial_;
    std::vector<figure::FigureSpec> panels_;
    QStringList entriesAsMade_;
    figure::FigureMaker maker_;
    FigureGallery* gallery_;
    QLabel* about_; ///< what the kind shows
    QFormLayout* form_ = nullptr;
    QListWidget* runs_;    ///< of this text: checked ones are shown, in this order, by these names
    QListWidget* entries_; ///< of the legend, likewise
    QComboBox* shown_;
    QLineEdit* policies_;
    QWidget* range_;
    QSpinBox* first_;
    QSpinBox* last_;
    QDoubleSpinBox* width_;
    QDoubleSpinBox* height_; ///< at its minimum: as high as it needs to be
    QComboBox* legend_;
    QLineEdit* xLow_ = nullptr;
    QLineEdit* xHigh_ = nullptr;
    QLineEdit* yLow_ = nullptr;
    QLineEdit* yHigh_ = nullptr;
    QWidget* xLimits_ = nullptr;
    QWidget* yLimits_ = nullptr;
    QLineEdit* title_;
    QComboBox* family_;       ///< of the letters
    QDoubleSpinBox* letters_; ///< their size
    QComboBox* palette_;
    QComboBox* map_;
    QComboBox* theme_;
    QComboBox* vision_;
    QComboBox* format_;
    QCheckBox* extra_; ///< step ticks, the scatter, or letters of panels
    QSpinBox* columns_;
    QPushButton* add_;
    QPushButton* clear_;
    QLineEdit* file_;
    CommandLine* command_;
    QLabel* message_;
    figure::FigurePreview* preview_;
    QDialogButtonBox* buttons_;
    QTimer pending_;
};

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/view_context.h"
#include "views/figure/preview.h"
#include "views/figure/spec.h"

#include <QDialog>
#include <QStringList>
#include <QTimer>

#include <memory>
#include <optional>
#include <vector>

class QComboBox;
class QDialogButtonBox;
class QLabel;
class QListWidget;
class QPushButton;
class QScrollArea;

namespace ponderscope {

class CommandLine;
class FigureFile;
class FigureForm;
class NameList;

/// The figure workbench: all kinds, the runs of a figure, a form of its keys, and the figure at true size, on
/// request in grey or as seen with deuteranopia. Can combine figures on one page. Writes the figure, its
/// numbers as CSV and its specification (FILE.json). Shows the command line. Stays open for the next figure.
class ExportDialog : public QDialog {
    Q_OBJECT
public:
    /// \p initial: the figure of the window's content; its first run is A, its second B. Needs an open trace.
    ExportDialog(ViewContext context, figure::FigureSpec initial, QWidget* parent = nullptr);

    [[nodiscard]] figure::FigureSpec spec() const;
    [[nodiscard]] FigureFile* file() const { return file_; }
    /// The shown figure; null: none.
    [[nodiscard]] const figure::Figure* figure() const { return figure_.get(); }
    [[nodiscard]] bool isBusy() const { return reading_.isBusy(); }
    /// Writes figure, numbers and specification. True if all files are on disk. False: the dialog shows the
    /// error, or the user kept the files of another figure.
    bool write();
    /// Opens a specification: its kind, runs and look. False, with a message, if this is impossible.
    bool openSpec(const QString& file);
    [[nodiscard]] QString message() const;
    [[nodiscard]] NameList* runs() const { return runs_; }
    [[nodiscard]] NameList* entries() const { return entries_; }
    [[nodiscard]] FigureForm* form() const { return form_; }
    [[nodiscard]] figure::FigurePreview* preview() const { return preview_; }
    void setKind(figure::FigureKind kind);
    /// Adds the shown figure to the page of panels.
    void addPanel();

Q_SIGNALS:
    void exported(const QStringList& files);
    void dockWanted(const ponderscope::figure::FigureSpec& spec); ///< add the figure as a panel of the window

private:
    [[nodiscard]] std::vector<figure::SeriesSpec> namedSeries() const;
    [[nodiscard]] QWidget* buildForm();
    void fillRuns();
    void fillEntries(); ///< lists the legend entries of the current figure
    void fillChoices();
    void apply(const figure::FigureSpec& spec);
    void kindChanged();
    void make();
    void compose(const figure::FigureSpec& spec, const std::shared_ptr<const figure::FigureData>& gathered);
    void refuse(const QString& sentence); ///< shows why there is no figure
    void arrived();
    void showCommand();
    [[nodiscard]] figure::FigureKind kind() const;

    TraceData& data_;
    Selection& selection_;
    Theme& windowTheme_;
    figure::FigureSpec initial_;
    std::vector<figure::FigureSpec> panels_;
    Task reading_{this};
    std::shared_ptr<const figure::FigureData> gathered_; ///< the data, reused if only the look changes
    std::optional<figure::FigureSpec> gatheredOf_;
    std::unique_ptr<figure::Fonts> fonts_;
    std::unique_ptr<figure::Figure> figure_;
    QListWidget* kinds_;
    QLabel* about_;     ///< describes the kind
    NameList* runs_;    ///< runs over the figure's text
    NameList* entries_; ///< entries of the legend
    FigureForm* form_;
    QScrollArea* formArea_ = nullptr;
    QComboBox* vision_;
    QPushButton* add_;
    QPushButton* clear_;
    FigureFile* file_;
    CommandLine* command_;
    QLabel* message_;
    figure::FigurePreview* preview_;
    QDialogButtonBox* buttons_;
    QTimer pending_;
};

} // namespace ponderscope

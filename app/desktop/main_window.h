// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/launch.h"
#include "app/desktop/recorder.h"
#include "app/desktop/rerun.h"
#include "app/desktop/samples.h"
#include "views/common/trace_data.h"
#include "views/common/view_context.h"
#include "views/figure/spec.h"

#include <QDateTime>
#include <QMainWindow>
#include <QSet>
#include <QTimer>

#include <map>
#include <vector>

class QDockWidget;
class QLabel;
class QMenu;

namespace ponderscope {

class LiveView;
class CompareView;
class ExportDialog;
class HaltingView;
class HeatmapView;
class InspectorView;
class LibraryPanel;
class MessageBar;
class PolicyLab;
class RecordDialog;
class RecordingStatus;
class Settings;
class TextPanel;
class TopBar;
class Tour;
class WelcomePage;

/// The window: the library at the left, the text in the centre, heatmap and tabs below, the inspector at the
/// right. Owns the open traces and the selection that all views share.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    /// Both outlive the window.
    MainWindow(Theme& theme, Settings& settings, QWidget* parent = nullptr);
    ~MainWindow() override;

    /// A trace, TRACE#RUN, or a checkpoint folder (which opens the Run dialog).
    void open(const QString& path);
    /// What the command line asks to be shown, as soon as it is there.
    void apply(const Launch& launch);
    /// Something is still being read, laid out or computed.
    [[nodiscard]] bool isBusy() const;
    [[nodiscard]] QStringList errors() const;

    [[nodiscard]] TraceData& data() { return data_; }
    [[nodiscard]] Selection& selection() { return selection_; }
    [[nodiscard]] Recorder& recorder() { return recorder_; }
    [[nodiscard]] TextPanel& text() { return *text_; }
    [[nodiscard]] LibraryPanel& library() { return *library_; }
    [[nodiscard]] HeatmapView& heatmap() { return *heatmap_; }
    [[nodiscard]] InspectorView& inspector() { return *inspector_; }
    [[nodiscard]] CompareView& compare() { return *compare_; }
    [[nodiscard]] PolicyLab& lab() { return *lab_; }
    [[nodiscard]] HaltingView& halting() { return *halting_; }
    /// Brings a panel to the front; false when there is none of that name.
    bool raisePanel(const QString& name);
    [[nodiscard]] TopBar& topBar() { return *top_; }
    [[nodiscard]] MessageBar& messages() { return *messages_; }
    [[nodiscard]] RecordDialog* recordDialog() { return recordDialog_; } ///< null unless it is open
    [[nodiscard]] ExportDialog* exportDialog() { return exportDialog_; } ///< null unless it is open
    [[nodiscard]] QString statusText() const;
    [[nodiscard]] WelcomePage& welcome() { return *welcome_; }
    [[nodiscard]] Tour* tour() { return tour_; } ///< null unless one is going on

public slots:
    void openFiles();
    void showRecordDialog(const ponderscope::RecordRequest& request = {});
    /// The Export dialog, with what the window shows as its beginning. Nothing without a run.
    void exportFigure(ponderscope::figure::FigureKind kind);
    void restoreDefaultLayout();
    void showAbout();
    /// Over the panels; hidden by whatever opens.
    void showWelcome();
    void hideWelcome();
    /// Six stops over what is open, or over the sample, which is opened or recorded first.
    void startTour();
    /// Records a sample over the passage into a trace of the user's own.
    void recordSample(int model);
    /// Help on the panel that has the focus; on the text otherwise.
    void showHelp();

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void buildPanels();
    /// The panels as they come, for a window of this height: low ones show heatmap and comparison as tabs.
    void arrange(int height);
    void buildMenus();
    void buildWelcome();
    void placeWelcome();
    void addPanel(const QString& name, const QString& title, QWidget* widget, bool header);
    void connectData();
    void connectRecorder();
    void connectRerun();
    void traceOpened(const QString& path);
    void traceChanged(const QString& path);
    void chooseRuns();
    void showStatus();
    void showTitle();
    void poll();
    void fillRecent(QMenu* menu);
    void checkTrace(const QString& path);
    [[nodiscard]] figure::FigureSpec figureSpec(figure::FigureKind kind) const;

    Theme& theme_;
    Settings& settings_;
    TraceData data_;
    Selection selection_;
    Recorder recorder_;
    Rerun rerun_;
    bool rerunning_ = false; ///< what is being recorded is the lab's rerun
    TopBar* top_ = nullptr;
    TextPanel* text_ = nullptr;
    LibraryPanel* library_ = nullptr;
    InspectorView* inspector_ = nullptr;
    HeatmapView* heatmap_ = nullptr;
    CompareView* compare_ = nullptr;
    PolicyLab* lab_ = nullptr;
    HaltingView* halting_ = nullptr;
    std::vector<LiveView*> live_;
    MessageBar* messages_ = nullptr;
    RecordingStatus* recording_ = nullptr;
    RecordDialog* recordDialog_ = nullptr;
    ExportDialog* exportDialog_ = nullptr;
    WelcomePage* welcome_ = nullptr;
    Tour* tour_ = nullptr;
    Samples samples_;
    bool tourWanted_ = false; ///< as soon as a run is there
    bool greeted_ = false;    ///< the welcome page was shown, or something was opened before it could be
    QLabel* status_ = nullptr;
    std::vector<QDockWidget*> docks_;
    std::map<QString, QDockWidget*> dockByName_;
    QTimer poll_;
    Launch launch_;
    QSet<QString> opening_;
    std::vector<std::pair<QString, QString>>
        wanted_;                        ///< (trace, run) of TRACE#RUN arguments: the first is A, the second B
    std::map<QString, QDateTime> seen_; ///< time stamps of traces that are still growing
    std::vector<qint64> runsBefore_;    ///< of the trace that is recorded into
    QStringList errors_;
};

} // namespace ponderscope

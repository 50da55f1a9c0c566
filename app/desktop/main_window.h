// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/launch.h"
#include "app/desktop/opener.h"
#include "app/desktop/recorder.h"
#include "app/desktop/rerun.h"
#include "app/desktop/run_follower.h"
#include "app/desktop/samples.h"
#include "app/desktop/scratch.h"
#include "app/desktop/thinker.h"
#include "app/desktop/trace_watch.h"
#include "app/desktop/view_state.h"
#include "views/common/task.h"
#include "views/common/trace_data.h"
#include "views/common/view_context.h"
#include "views/figure/spec.h"

#include <QJsonArray>
#include <QMainWindow>
#include <QPointer>
#include <QTemporaryDir>
#include <QTimer>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

class QAction;
class QComboBox;
class QDockWidget;
class QFileDialog;
class QLabel;
class QMenu;
class QShortcut;

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
class ThinkPanel;
class TopBar;
class Tour;
class WelcomePage;
struct Panel;

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
    void compareOverTheSameText(); ///< B reads what A reads, where another run does
    [[nodiscard]] Recorder& recorder() { return recorder_; }
    [[nodiscard]] TextPanel& text() { return *text_; }
    [[nodiscard]] const Scratch& scratch() const { return scratch_; }
    [[nodiscard]] LibraryPanel& library() { return *library_; }
    [[nodiscard]] HeatmapView& heatmap() { return *heatmap_; }
    [[nodiscard]] InspectorView& inspector() { return *inspector_; }
    [[nodiscard]] CompareView& compare() { return *compare_; }
    [[nodiscard]] PolicyLab& lab() { return *lab_; }
    [[nodiscard]] HaltingView& halting() { return *halting_; }
    [[nodiscard]] ViewState viewState() const;
    /// False when it could not be written; a message says why.
    bool saveSessionTo(const QString& file);
    [[nodiscard]] ThinkPanel& thinkPanel() { return *think_; }
    [[nodiscard]] Thinker& thinker() { return thinker_; }
    /// As the command line asks: at the place and size and with the panels of the last time, or the size of a
    /// picture; then shown, then what it names is opened.
    void start(const Launch& launch);
    /// No larger than this part of a screen, and within it; untouched where it is.
    void fitTo(const QRect& screen);
    /// Brings a panel to the front; false when there is none of that name.
    bool raisePanel(const QString& name);
    [[nodiscard]] TopBar& topBar() { return *top_; }
    [[nodiscard]] MessageBar& messages() { return *messages_; }
    [[nodiscard]] RecordDialog* recordDialog() const; ///< null unless it is open
    [[nodiscard]] ExportDialog* exportDialog() const; ///< null unless it is open
    [[nodiscard]] QString statusText() const;
    [[nodiscard]] WelcomePage& welcome() { return *welcome_; }
    [[nodiscard]] const std::vector<SavedView>& views() const { return views_; }
    [[nodiscard]] bool isPresenting() const { return presenting_.has_value(); }
    [[nodiscard]] Tour* tour() { return tour_; } ///< null unless one is going on

public Q_SLOTS:
    void openFiles();
    /// File > Connect: another machine's traces and checkpoints; at once those of \p place
    /// (ssh://host/folder).
    void connectTo(const QString& place = {});
    void showRecordDialog(const ponderscope::RecordRequest& wanted = {});
    /// Whether the checkpoints of two runs have a common origin; begins at once when both are there.
    /// The Export dialog, with what the window shows as its beginning. Nothing without a run.
    void exportFigure(ponderscope::figure::FigureKind kind);
    void restoreDefaultLayout();
    /// One panel over the whole window; the same again: as it was before.
    void maximise(QDockWidget* dock);
    void showAbout();
    /// Over the panels; hidden by whatever opens.
    void showWelcome();
    void hideWelcome();
    /// Six stops over what is open, or over the sample, which is opened or recorded first.
    void startTour();
    /// Opens the user's copy of the recorded sample.
    void openSample();
    /// Records a sample over the passage into a trace of the user's own.
    void recordSample(int model);
    /// Back and forth through what was selected, searched for and zoomed to.
    void undo();
    void redo();
    void saveSession();
    /// Another window on the same settings, with traces of its own.
    void newWindow();
    /// Ctrl+K: any action by its name.
    void showPalette();
    void showShortcuts();
    /// Lets a model continue a prompt, token by token; the panel that asks for one.
    void think(const ponderscope::ThinkRequest& request);
    void showThink();
    /// What if: run A again on the same tokens, with this one given \p steps; the difference is shown.
    void giveSteps(qint64 token, int steps);
    /// What if: run A again without a source of its depth attention, in one layer or (-1) in all.
    void leaveSourceOut(int source, int layer);
    /// Keeps the place of a state of run A, to be carried elsewhere: after \p step of this token, in its end
    /// or (from 0) after a layer.
    void takeState(qint64 token, int step, int layer);
    /// What if: run A again with the state that was taken in the place of that of this token after \p step.
    void putState(qint64 token, int step);
    /// Help on the panel that has the focus; on the text otherwise.
    void showHelp();
    /// To the clipboard: what makes again, outside the window, what \p panel shows. Says so, or why there is
    /// nothing.
    void copyCommand(QWidget* panel);
    /// Keeps what is looked at, for presenting and in the session.
    void keepView();
    /// Large letters and nothing but the text, or the panel that fills the window; Page down and Page up go
    /// through the views that were kept, Escape ends it. The same again ends it, too.
    void present();
    void presentView(int by);

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildPanels();
    /// The panels as they come, for a window of this size: low ones show what stands under the text as tabs
    /// of one place, narrow ones the inspector beside the library.
    void arrange(QSize window);
    void fitPanels(); ///< the same after the window was resized, for panels that are where they came
    void leaveMaximised();
    /// Drops what hangs on the mouse: in a drag Qt keeps places of the layout, which must not change then.
    void putDown();
    /// What saveState() gave; all that changes the whole layout goes through here. Of a window that was not
    /// shown yet it is kept until then: Qt keeps a copy of the layout of a window that will be maximised, and
    /// puts it back over one that comes meanwhile. False: of another version.
    bool restoreLayout(const QByteArray& layout);
    [[nodiscard]] QByteArray layoutState() const; ///< of all panels, whatever fills the window
    void buildMenus();
    [[nodiscard]] const ponderscope::Samples& samples();
    void buildWelcome();
    void buildThink();
    void buildHabits();
    void buildViewMenu(QMenu* view);
    void showState(const ViewState& state);
    void showHistory();
    void showCaption();
    void fillViews(QMenu* menu);
    /// Whether the window may close as far as Scratch goes; asks where not.
    [[nodiscard]] bool leavesScratch();
    [[nodiscard]] std::vector<RunKey> runsNotKept() const; ///< of Scratch, here and on other machines
    void keepAllOfScratch();
    void openSession(const QString& file);
    void connectOpener();
    void fail(const QString& sentence);
    void follow(const TraceWatch::Change& change);
    /// Run A again with one thing changed.
    struct WhatIf {
        QString forceSteps;      ///< "SEQUENCE/POSITION:STEPS", or empty
        QString ablate;          ///< "S" or "S:LAYER", or empty
        QString name;            ///< what is added to the run's
        QJsonArray patches = {}; ///< states that are put in, as a patch file has them
    };
    /// The file of what a run was patched with and what is put in now; empty: nothing, or it could not be
    /// written, which is said.
    [[nodiscard]] std::optional<QString> patchFile(const RunInfo& run, const QJsonArray& more);
    void fillCarry(QMenu& menu, qint64 token, const RunInfo& run, int ran, const QString& word);
    void startWhatIf(const WhatIf& question);
    void showTextMenu(qint64 token, const QPoint& place);
    void fillWhatIf(QMenu& menu, qint64 token);
    [[nodiscard]] QString checkpointOf(const RunKey& key) const;
    void connectRuns();
    /// False, and said, where runs that nobody asked to keep have no place.
    [[nodiscard]] bool scratchReady();
    /// Says what A − B is, of the runs that A and B are now; taken back when they are others.
    void sayPair();
    void unsayPair();
    /// Works on a trace in the background, then reads it anew and shows what \p edit gave, if anything.
    /// \p then: when it was done.
    using RunEdit = std::function<QString(const std::stop_token&, const Task::Tell&)>;
    void editRuns(RunEdit edit, const QString& trace, const std::function<void()>& then = {});
    /// Asks for a trace to copy runs into, beside the one that was looked at.
    QFileDialog* keepDialog(const QString& title);
    void renameRun(const ponderscope::RunKey& key, const QString& name);
    void removeRun(const ponderscope::RunKey& key);
    void keepRun(const ponderscope::RunKey& key);
    /// Asks where the checkpoint of a run is now, makes sure that it is the one, remembers it, goes on.
    void locateCheckpoint(const RunKey& key, const std::function<void()>& then);
    /// Of the run on the screen, the samples, and what was used before.
    [[nodiscard]] QStringList offeredCheckpoints();
    [[nodiscard]] bool isListed(const RunKey& key) const; ///< known, and not hidden
    /// The panel that has the focus; the text otherwise.
    [[nodiscard]] QWidget* focusedPanel() const;
    [[nodiscard]] QDockWidget* focusedDock() const; ///< null: the text has the focus
    void placeWelcome();
    void addPanel(const Panel& panel, QWidget* view);
    void connectData();
    void connectRecorder();
    void connectRerun();
    /// Where runs that nobody asked to keep go: to the machine that computes them.
    [[nodiscard]] QString scratchFor(const QString& lies);
    void traceOpened(const QString& path);
    void chooseRuns();  ///< where A or B are not there any more
    void fitSequence(); ///< to one that run A has
    void showStatus();
    void showTitle();
    void poll();
    static void emptyMenu(QMenu& menu);
    /// Fills \p menu with the entries of a drop-down list whenever it opens.
    void fillFrom(QMenu* menu, QComboBox& box);
    void fillRecent(QMenu* menu);
    void checkTrace(const QString& path);
    [[nodiscard]] figure::FigureSpec figureSpec(figure::FigureKind kind) const;

    Theme& theme_;
    Settings& settings_;
    TraceData data_;
    Selection selection_;
    Opener opener_{data_, selection_};
    RunFollower follower_{data_, selection_, opener_};
    Recorder recorder_;
    Rerun rerun_;
    bool rerunning_ = false; ///< what is being recorded is the lab's rerun
    Thinker thinker_{data_};
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
    QPointer<RecordDialog> recordDialog_;
    QPointer<ExportDialog> exportDialog_;
    WelcomePage* welcome_ = nullptr;
    Tour* tour_ = nullptr;
    ThinkPanel* think_ = nullptr;
    /// A state that was taken, to be put elsewhere.
    struct TakenState {
        RunKey run; ///< not valid: none
        qint64 sequence = 0, row = 0;
        int step = 0, layer = -1;
        QString word;
    };
    TakenState taken_;
    std::unique_ptr<QTemporaryDir> patchFolder_; ///< of the last patch file
    QAction* undo_ = nullptr;
    QAction* redo_ = nullptr;
    ViewHistory history_;
    QTimer settling_;         ///< until what changes holds still
    bool travelling_ = false; ///< undo and redo change what is looked at, and are no step of their own
    std::vector<SavedView> views_;
    /// While it is presented: what was there before.
    struct Presenting {
        ViewState view;
        Qt::WindowStates window;
        QDockWidget* filled; ///< the panel that filled the window; null: none
        QByteArray layout;
        int at = -1; ///< of views_; -1: what was looked at
        QList<QShortcut*> keys = {};
    };
    std::optional<Presenting> presenting_;
    QLabel* caption_ = nullptr; ///< what is presented
    std::set<RunKey> kept_;     ///< runs of Scratch that were copied elsewhere
    bool scratchAsked_ = false; ///< they may go
    Samples samples_;
    RunKey lastB_;
    bool withoutB_ = false; ///< B was given up by choice: none is chosen for the user
    Scratch scratch_;
    QString pairSaid_; ///< of pairSaidOf_; empty: nothing
    std::pair<RunKey, RunKey> pairSaidOf_;
    Task edits_{this};
    Task checking_{this};
    Task locating_{this};
    Task watching_{this};     ///< what the file system says of the open files
    bool tourWanted_ = false; ///< as soon as a run is there
    bool greeted_ = false;    ///< the welcome page was shown, or something was opened before it could be
    QLabel* status_ = nullptr;
    std::vector<QDockWidget*> docks_;
    bool low_ = false;    ///< the lower panels were put among the upper ones
    bool narrow_ = false; ///< the inspector was put beside the library
    QDockWidget* maximised_ = nullptr;
    QByteArray beforeMaximised_; ///< the layout
    QByteArray layoutToCome_;    ///< once the window is on the screen
    std::map<QString, QDockWidget*> dockByName_;
    QTimer poll_;
    TraceWatch watch_;
    QStringList errors_;
};

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"
#include "views/common/view_context.h"

#include <QMainWindow>
#include <QStringList>

#include <memory>

class QLabel;

namespace ponderscope {

class DockLayout;
class FigureExport;
class Greeting;
class MainMenu;
class MessageBar;
class OpenTraces;
class RunController;
class RunEdits;
class SessionState;
class Settings;
class TextPanel;
class TopBar;
class WhatIf;
struct Launch;

/// The window: the library on the left, the text in the centre, heatmap and tabs below, the inspector on the
/// right. Owns the open traces, the shared selection, and the parts that do the work.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    /// \p theme and \p settings must outlive the window.
    MainWindow(Theme& theme, Settings& settings, QWidget* parent = nullptr);
    ~MainWindow() override;

    /// Applies the command line. First restores geometry and panels, or sets the size for a screenshot. Then
    /// shows the window and opens the files.
    void start(const Launch& launch);
    /// Applies the command line's requests after loading.
    void apply(const Launch& launch);
    /// Whether a part of the window is reading, laying out or computing.
    [[nodiscard]] bool isBusy() const;
    [[nodiscard]] const QStringList& errors() const { return errors_; }
    [[nodiscard]] QString statusText() const;
    /// Brings a panel to the front. False: no such panel.
    bool raisePanel(const QString& name);

    [[nodiscard]] TraceData& data() { return data_; }
    [[nodiscard]] Selection& selection() { return selection_; }
    [[nodiscard]] TextPanel& text() { return *text_; }
    [[nodiscard]] TopBar& topBar() { return *top_; }
    [[nodiscard]] MessageBar& messages() { return *messages_; }
    [[nodiscard]] OpenTraces& traces() const { return *traces_; }
    [[nodiscard]] DockLayout& docks() const { return *docks_; }
    [[nodiscard]] RunController& runs() const { return *runs_; }
    [[nodiscard]] WhatIf& whatIf() const { return *whatIf_; }
    [[nodiscard]] FigureExport& figures() const { return *figures_; }
    [[nodiscard]] SessionState& session() const { return *session_; }
    [[nodiscard]] Greeting& greeting() const { return *greeting_; }
    [[nodiscard]] MainMenu& menu() const { return *menu_; }
    /// The panel of the class \p View.
    template <class View>
    [[nodiscard]] View& panel() const {
        return *findChild<View*>();
    }

public Q_SLOTS:
    void open(const QString& path); ///< see OpenTraces::open
    /// Opens another window with the same settings and its own traces.
    void newWindow();

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void build();
    void connectParts();
    void showStatus();
    void showTitle();

    Theme& theme_;
    Settings& settings_;
    TraceData data_;
    Selection selection_;
    QStringList errors_;
    // The widgets below are deleted after the parts, and before data and selection.
    std::unique_ptr<TopBar> top_;
    std::unique_ptr<QWidget> centre_;
    TextPanel* text_ = nullptr;
    MessageBar* messages_ = nullptr;
    QLabel* status_ = nullptr;
    std::unique_ptr<OpenTraces> traces_;
    std::unique_ptr<DockLayout> docks_;
    std::unique_ptr<RunEdits> edits_;
    std::unique_ptr<RunController> runs_;
    std::unique_ptr<WhatIf> whatIf_;
    std::unique_ptr<FigureExport> figures_;
    std::unique_ptr<SessionState> session_;
    std::unique_ptr<Greeting> greeting_;
    std::unique_ptr<MainMenu> menu_;
};

} // namespace ponderscope

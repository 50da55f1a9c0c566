// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of panels start from.
#pragma once

#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/common/selection.h"
#include "views/common/theme.h"
#include "views/common/trace_data.h"
#include "views/common/view_context.h"

#include <QAbstractButton>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include <filesystem>

namespace ponderscope::testing {

using Qt::StringLiterals::operator""_s;

/// Waits until \p condition holds. Ends the program if it never does.
template <class Condition>
void wait_for(const Condition& condition) {
    if (!QTest::qWaitFor(condition, 60'000)) {
        qFatal("a test waited for a state that never came");
    }
}

/// What a window gives its panels, and a folder for traces.
struct ViewStage {
    /// Writes runs of a sample trace into the folder; the path of the trace.
    [[nodiscard]] QString write(const std::string& name, const SampleTrace& what) const {
        write_sample_trace(folder / name, what);
        return QString::fromStdString((folder / name).string());
    }
    /// Opens a trace, or reads it again, and waits for it.
    void open(const QString& path) {
        QSignalSpy opened(&data, &TraceData::traceOpened);
        trace = path;
        data.open(path);
        wait_for([&] { return !opened.isEmpty(); });
    }
    void open(const std::filesystem::path& path) { open(QString::fromStdString(path.string())); }
    /// A run of the trace that was opened last, by its place in the trace.
    [[nodiscard]] RunKey run(std::size_t place) const { return {trace, data.runs(trace).at(place).id}; }

    TemporaryFolder folder;
    QString trace; ///< the one that was opened last
    TraceData data;
    Selection selection;
    Theme theme{Appearance::light};
    ViewContext context{data, selection, theme};
};

/// The same with a panel of this size.
template <class View>
struct PanelStage : ViewStage {
    explicit PanelStage(QSize size) {
        view.resize(size);
        view.show();
    }
    View view{context};
};

/// Clicks the only button whose words contain these.
inline void click(const QWidget& panel, const QString& words) {
    QList<QAbstractButton*> buttons = panel.findChildren<QAbstractButton*>();
    buttons.removeIf([&](const QAbstractButton* button) { return !button->text().contains(words); });
    QCOMPARE(buttons.size(), 1);
    QVERIFY(buttons.front()->isEnabled());
    buttons.front()->click();
}

/// Sends the event rather than moving the cursor, which another window of the test may lie under.
inline void move_mouse(QWidget* widget, QPointF to) {
    QMouseEvent event(QEvent::MouseMove, to, widget->mapToGlobal(to), Qt::NoButton, Qt::NoButton, {});
    QCoreApplication::sendEvent(widget, &event);
}

/// Presses the left button, moves there in two steps and lets go.
inline void drag(QWidget* widget, QPointF from, QPointF to, Qt::KeyboardModifiers keys = {}) {
    const auto send = [&](QEvent::Type type, QPointF at, Qt::MouseButton button, Qt::MouseButtons held) {
        QMouseEvent event(type, at, widget->mapToGlobal(at), button, held, keys);
        QCoreApplication::sendEvent(widget, &event);
    };
    send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
    send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, Qt::LeftButton);
    send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
    send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
}

/// Whether the widget took the turn. \p by: eighths of a degree.
inline bool turn_wheel(QWidget* widget, QPointF at, QPoint by, Qt::KeyboardModifiers keys = {}) {
    QWheelEvent event(at, widget->mapToGlobal(at), {}, by, Qt::NoButton, keys, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &event);
    return event.isAccepted();
}

} // namespace ponderscope::testing

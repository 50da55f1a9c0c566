// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/dock_layout.h"
#include "app/desktop/figure_export.h"
#include "app/desktop/greeting.h"
#include "app/desktop/main_menu.h"
#include "app/desktop/main_window.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/session_state.h"
#include "app/desktop/settings.h"
#include "app/desktop/what_if.h"
#include "tests/support/sample_trace.h"
#include "views/common/theme.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QtTest>
#include <QtWidgets>

// Qt's own five seconds are short for a machine that does other work.
#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(state) QTRY_VERIFY_WITH_TIMEOUT((state), 60'000)
#define QTRY_VERIFY2(state, words) QTRY_VERIFY2_WITH_TIMEOUT((state), (words), 60'000)
#define QTRY_COMPARE(is, due) QTRY_COMPARE_WITH_TIMEOUT((is), (due), 60'000)

namespace ponderscope::testing {

using Qt::StringLiterals::operator""_s;

/// Whether a state comes; it is waited for far longer than a slow machine with other work takes.
template <class State>
[[nodiscard]] bool comes(const State& state) {
    return QTest::qWaitFor(state, 120'000);
}

/// Whether a widget is of one of these classes.
[[nodiscard]] inline bool is_any_of(const QWidget& widget, std::initializer_list<const char*> classes) {
    return std::ranges::any_of(classes, [&](const char* one) { return widget.inherits(one); });
}

/// Whether a message of this id comes that contains \p part.
[[nodiscard]] inline bool says(MainWindow& window, const char* id, const QString& part = {}) {
    return comes([&] { return window.messages().has(id, part); });
}

/// Whether the window has looked at its files so many times, at once and not by its clock.
[[nodiscard]] inline bool looks(MainWindow& window, int times) {
    QSignalSpy looked(&window.traces(), &OpenTraces::looked);
    for (; times > 0; --times) {
        window.traces().poll();
        if (!looked.wait(60'000)) {
            return false;
        }
    }
    return true;
}

/// Thousands of lines of the offscreen platform, which has no windows to raise, would hide those that matter.
inline void spare_the_log() {
    static const QtMessageHandler before =
        qInstallMessageHandler([](QtMsgType type, const QMessageLogContext& context, const QString& text) {
            if (!text.startsWith(u"This plugin does not support "_s)) {
                before(type, context, text);
            }
        });
}

/// A window with settings and files of its own.
struct Stage {
    Stage() : settings(folder.filePath(u"settings.ini"_s)) {
        spare_the_log();
        QStandardPaths::setTestModeEnabled(true); // nothing of the user's is read or written
    }
    QString make(const QString& name, const SampleTrace& what = {.sequences = 2, .tokens = 400}) const {
        const QString path = folder.filePath(name);
        write_sample_trace(path.toStdString(), what);
        return path;
    }
    /// Writes a file, by its path or its name in the folder; its path.
    QString write(const QString& name, const QByteArray& bytes) const {
        const QString path = QDir(folder.path()).filePath(name);
        QFile file(path);
        if (!QDir().mkpath(QFileInfo(path).path()) || !file.open(QIODevice::WriteOnly) ||
            file.write(bytes) != bytes.size()) {
            QTest::qFail(qPrintable(path), __FILE__, __LINE__);
        }
        return path;
    }
    [[nodiscard]] static QByteArray read(const QString& path) {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    /// A program that says \p script in the shell's language.
    [[nodiscard]] QString program(const QString& name, const QByteArray& script) const {
        const QString path = write(name, "#!/bin/sh\n" + script);
        QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }
    [[nodiscard]] bool settle() {
        return comes([&] { return !window.isBusy() && !window.runs().recorder().isRunning(); }) &&
               window.selection().runA().isValid();
    }
    /// The window on the screen, with \p path open.
    [[nodiscard]] bool shows(const QString& path) {
        window.show();
        window.open(path);
        return settle();
    }
    void drop(const QList<QUrl>& urls) {
        QMimeData mime;
        mime.setUrls(urls);
        QDragEnterEvent enter(QPoint(300, 300), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&window, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent event(QPointF(300, 300), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&window, &event);
    }
    /// Presses a button of the question that is open. False: there is none.
    [[nodiscard]] bool press(const QString& button) const {
        const auto* box = window.findChild<QMessageBox*>();
        const auto buttons = box == nullptr ? QList<QAbstractButton*>() : box->buttons();
        for (QAbstractButton* one : buttons) {
            if (one->text().remove(u'&') == button) {
                one->click();
                return comes([&] { return window.findChild<QMessageBox*>() == nullptr; });
            }
        }
        return false;
    }
    /// Types a path into the file dialog of this name and accepts it. False: it is not open.
    [[nodiscard]] bool chooseFile(const QString& dialog, const QString& path) const {
        auto* found = window.findChild<QFileDialog*>(dialog);
        if (found == nullptr) {
            return false;
        }
        found->findChild<QLineEdit*>(u"fileNameEdit"_s)->setText(path);
        QMetaObject::invokeMethod(found, "accept");
        return comes([&] { return window.findChild<QFileDialog*>(dialog) == nullptr; });
    }

    QTemporaryDir folder;
    Theme theme{Appearance::light};
    Settings settings;
    MainWindow window{theme, settings};
};

} // namespace ponderscope::testing

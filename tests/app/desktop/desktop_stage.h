// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/main_window.h"
#include "app/desktop/settings.h"
#include "tests/support/sample_trace.h"
#include "views/common/theme.h"

#include <QApplication>
#include <QDropEvent>
#include <QFile>
#include <QMimeData>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QUrl>

namespace ponderscope::testing {

/// A window with settings and files of its own.
struct Stage {
    Stage() : settings(folder.filePath(QStringLiteral("settings.ini"))) {
        QStandardPaths::setTestModeEnabled(true); // nothing of the user's is read or written
    }
    QString make(const QString& name, const SampleTrace& what = {.sequences = 2, .tokens = 400}) const {
        const QString path = folder.filePath(name);
        write_sample_trace(path.toStdString(), what);
        return path;
    }
    /// A program that says \p script in the shell's language.
    [[nodiscard]] QString program(const QString& name, const QByteArray& script) const {
        const QString path = folder.filePath(name);
        QFile file(path);
        if (file.open(QIODevice::WriteOnly)) {
            file.write("#!/bin/sh\n" + script);
            file.close();
            file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        }
        return path;
    }
    [[nodiscard]] bool settle() {
        return QTest::qWaitFor([&] { return !window.isBusy(); }, 15'000) &&
               window.selection().runA().isValid();
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

    QTemporaryDir folder;
    Theme theme{Appearance::light};
    Settings settings;
    MainWindow window{theme, settings};
};

} // namespace ponderscope::testing

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/screenshot.h"

#include "app/desktop/main_window.h"
#include "core/base/utf8.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPixmap>
#include <QThread>

#include <cstdio>

namespace ponderscope {

namespace {

/// Nothing has changed for this long: the picture is final.
constexpr qint64 quiet_ms = 400;
constexpr qint64 patience_ms = 60'000;

void say(const QString& sentence) {
    std::fprintf(stderr, "ponderscope-desktop: %s\n", visible(sentence.toStdString()).c_str());
}

/// Until nothing has changed for a while; false, having said why, when it does not come to rest.
bool settle(MainWindow& window) {
    QElapsedTimer all;
    QElapsedTimer quiet;
    all.start();
    quiet.start();
    while (quiet.elapsed() < quiet_ms) {
        QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
        QThread::msleep(5);
        if (window.isBusy()) {
            quiet.restart();
        }
        if (all.elapsed() > patience_ms) {
            say(QStringLiteral("the window was still loading after a minute; nothing was written."));
            return false;
        }
    }
    const QStringList errors = window.errors();
    if (!errors.isEmpty()) {
        say(errors.constFirst());
    }
    return errors.isEmpty();
}

} // namespace

int write_screenshot(MainWindow& window, const Launch& launch) {
    if (!settle(window)) {
        return 2;
    }
    if (!window.grab().save(launch.screenshot, "PNG")) {
        say(QStringLiteral("cannot write %1. Check that its folder exists and is writable.")
                .arg(launch.screenshot));
        return 2;
    }
    return 0;
}

} // namespace ponderscope

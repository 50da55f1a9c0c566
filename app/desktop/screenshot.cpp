// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/screenshot.h"

#include "app/desktop/main_window.h"
#include "app/desktop/panels.h"
#include "app/desktop/tour.h"
#include "views/text/find_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QDir>
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
    std::fprintf(stderr, "ponderscope-desktop: %s\n", qPrintable(sentence));
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

bool save(QWidget& widget, const QString& file) {
    if (!widget.grab().save(file, "PNG")) {
        say(QStringLiteral("%1 could not be written; check that its folder exists and may be written to.")
                .arg(file));
        return false;
    }
    return true;
}

} // namespace

int write_screenshot(MainWindow& window, const Launch& launch) {
    return settle(window) && save(window, launch.screenshot) ? 0 : 2;
}

int write_all_screenshots(MainWindow& window, Theme& theme, const Launch& launch) {
    if (!QDir().mkpath(launch.screenshots)) {
        say(QStringLiteral("%1 could not be made; name a folder that may be written to.")
                .arg(launch.screenshots));
        return 2;
    }
    if (!settle(window)) {
        return 2;
    }
    const std::pair<Appearance, QString> appearances[] = {{Appearance::light, QStringLiteral("light")},
                                                          {Appearance::dark, QStringLiteral("dark")},
                                                          {Appearance::contrast, QStringLiteral("contrast")}};
    for (const auto& [appearance, suffix] : appearances) {
        theme.setAppearance(appearance);
        const auto shoot = [&, suffix = suffix](const QString& name) {
            return settle(window) &&
                   save(window,
                        QDir(launch.screenshots).filePath(name + u'-' + suffix + QStringLiteral(".png")));
        };
        bool good = true;
        window.restoreDefaultLayout();
        good = good && shoot(QStringLiteral("window"));
        for (const Panel& panel : panels()) {
            window.raisePanel(QString::fromLatin1(panel.name));
            good = good && shoot(QStringLiteral("panel-") + QString::fromLatin1(panel.name));
        }
        window.text().setZoom(TextZoom::tokens);
        good = good && shoot(QStringLiteral("text-tokens"));
        window.text().setZoom(TextZoom::corpus);
        good = good && shoot(QStringLiteral("text-map"));
        window.text().setZoom(TextZoom::text);
        window.text().setDifference(true);
        good = good && shoot(QStringLiteral("text-difference"));
        window.text().setDifference(false);
        window.text().setBars(Quantity::entropy);
        window.text().findText(QStringLiteral("nll > 6"));
        window.text().findBar().setListed(true);
        good = good && shoot(QStringLiteral("text-found"));
        window.text().findBar().setListed(false);
        window.text().findBar().close();
        window.text().setBars(Quantity::steps);
        window.showWelcome();
        good = good && shoot(QStringLiteral("welcome"));
        window.hideWelcome();
        window.startTour();
        for (int stop = 0; window.tour() != nullptr && good; ++stop) {
            good = shoot(QStringLiteral("tour-%1").arg(stop + 1));
            window.tour()->next();
        }
        // What floats is a picture of its own.
        const auto floating = [&, suffix = suffix](const QString& name) {
            QCoreApplication::processEvents();
            QWidget* popup = QApplication::activePopupWidget();
            const bool saved =
                popup != nullptr &&
                save(*popup,
                     QDir(launch.screenshots).filePath(name + u'-' + suffix + QStringLiteral(".png")));
            if (popup != nullptr) {
                popup->close();
            }
            return saved;
        };
        window.showPalette();
        good = good && floating(QStringLiteral("palette"));
        window.showHelp();
        good = good && floating(QStringLiteral("help"));
        if (!good) {
            return 2;
        }
    }
    return 0;
}

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/screenshot.h"

#include "app/desktop/main_window.h"
#include "app/desktop/panels.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/tour.h"
#include "core/base/utf8.h"
#include "views/figure/export_dialog.h"
#include "views/figure/preview.h"
#include "views/policy/policy_lab.h"
#include "views/text/find_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QImage>
#include <QMenu>
#include <QMenuBar>
#include <QPainter>
#include <QPixmap>
#include <QThread>

#include <cstdio>

namespace ponderscope {

namespace {

/// Nothing has changed for this long: the picture is final.
constexpr qint64 quiet_ms = 400;
constexpr qint64 patience_ms = 60'000;
/// What the panels of one token show.
constexpr qint64 shown_token = 31;

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
        const bool drawing = window.exportDialog() != nullptr && window.exportDialog()->maker().isBusy();
        if (window.isBusy() || drawing) {
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

/// A run that has something for the panel, where the window has one: weights by depth for the one, gates for
/// others. Keeps the run otherwise.
void show_run_for(MainWindow& window, const QString& panel) {
    const auto fits = [&panel](const RunInfo& run) {
        const bool decides =
            run.method == "adaponderlm" || run.method == "ponderlm3" || run.method == "adaptive_latent_cot";
        return panel == u"depth"       ? run.depth_mixing != "none"
               : panel == u"attention" ? run.depth_mixing != "none" // the samples record it for that one
               : panel == u"halting"   ? decides
                                       : run.method == "ponderlm" && run.depth_mixing == "none";
    };
    const QStringList traces = window.data().traces();
    for (const QString& trace : traces) {
        for (const RunInfo& run : window.data().runs(trace)) {
            if (fits(run)) {
                window.selection().setRunA({trace, run.id});
                window.compareOverTheSameText();
                return;
            }
        }
    }
}

bool save(const QPixmap& picture, const QString& file) {
    if (!picture.save(file, "PNG")) {
        say(QStringLiteral("%1 could not be written; check that its folder exists and may be written to.")
                .arg(file));
        return false;
    }
    return true;
}

bool save(QWidget& widget, const QString& file) {
    return save(widget.grab(), file);
}

/// All pictures of an appearance on one sheet, small, with their names: what is looked at first.
bool save_sheet(const QString& folder, const QString& appearance) {
    constexpr int columns = 4;
    constexpr QSize cell{480, 330};
    constexpr int caption = 22;
    QStringList files =
        QDir(folder).entryList({QStringLiteral("*-%1.png").arg(appearance)}, QDir::Files, QDir::Name);
    files.removeAll(QStringLiteral("sheet-%1.png").arg(appearance));
    const int rows = (static_cast<int>(files.size()) + columns - 1) / columns;
    QPixmap sheet(QSize(columns * cell.width(), rows * cell.height()));
    sheet.fill(QColor(0x808080));
    QPainter painter(&sheet);
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    painter.setPen(Qt::white);
    for (int i = 0; i < static_cast<int>(files.size()); ++i) {
        const QPoint corner(i % columns * cell.width(), i / columns * cell.height());
        const QRect room(corner + QPoint(6, caption), cell - QSize(12, caption + 6));
        QImage picture(QDir(folder).filePath(files[i]));
        picture.setDevicePixelRatio(1);
        const QImage small = picture.scaled(room.size(), Qt::KeepAspectRatio, Qt::SmoothTransformation);
        painter.drawImage(room.topLeft(), small);
        painter.drawText(QRect(corner + QPoint(6, 0), QSize(room.width(), caption)),
                         Qt::AlignLeft | Qt::AlignVCenter, files[i]);
    }
    painter.end();
    return save(sheet, QDir(folder).filePath(QStringLiteral("sheet-%1.png").arg(appearance)));
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
    for (const auto& [appearance, named] : appearances) {
        theme.setAppearance(appearance);
        const auto shoot = [&, suffix = named](const QString& name) {
            return settle(window) &&
                   save(window,
                        QDir(launch.screenshots).filePath(name + u'-' + suffix + QStringLiteral(".png")));
        };
        bool good = true;
        window.selection().setToken(shown_token);
        window.restoreDefaultLayout();
        good = good && shoot(QStringLiteral("window"));
        for (const Panel& panel : panels()) {
            show_run_for(window, QString::fromLatin1(panel.name));
            window.raisePanel(QStringLiteral("library"));
            window.raisePanel(QStringLiteral("heatmap"));
            window.raisePanel(QString::fromLatin1(panel.name));
            good = good && shoot(QStringLiteral("panel-") + QString::fromLatin1(panel.name));
        }
        show_run_for(window, QStringLiteral("halting"));
        window.raisePanel(QStringLiteral("policies"));
        good = good && shoot(QStringLiteral("panel-lab-table"));
        window.lab().setTableShown(false);
        window.raisePanel(QStringLiteral("compare")); // with the lab go the colours of its replay
        show_run_for(window, {});
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
        const auto floating = [&, suffix = named](const QString& name) {
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
        const QList<QAction*> menus = window.topBar().menus().actions();
        for (const QAction* menu : menus) {
            menu->menu()->popup(window.mapToGlobal(QPoint(100, 40)));
            good = good && floating(QStringLiteral("menu-") + menu->text().remove(u'&').toLower());
        }
        window.topBar().runA().showPopup();
        good = good && floating(QStringLiteral("choices"));
        window.topBar().runA().hidePopup();
        const auto dialog = [&, suffix = named](QDialog* shown, const QString& name) {
            return shown != nullptr && settle(window) &&
                   save(*shown,
                        QDir(launch.screenshots).filePath(name + u'-' + suffix + QStringLiteral(".png")));
        };
        // Of a checkpoint, where it is there: its fields are those that it has.
        RecordRequest request;
        if (const RunInfo* run = window.data().run(window.selection().runA())) {
            request.checkpoint = find_checkpoint(*run, window.selection().runA().trace);
        }
        window.showRecordDialog(request);
        while (window.recordDialog()->inquiry().isRunning()) {
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        }
        good = good && dialog(window.recordDialog(), QStringLiteral("dialog-record"));
        window.recordDialog()->close();
        for (const auto kind : {figure::FigureKind::token_text, figure::FigureKind::policy_front}) {
            window.exportFigure(kind);
            window.exportDialog()->resize(QSize(1380, 760).boundedTo(window.size())); // not of this screen
            good =
                good && dialog(window.exportDialog(),
                               QStringLiteral("dialog-figure-") +
                                   QString::fromLatin1(figure::name_of(kind).data(),
                                                       static_cast<qsizetype>(figure::name_of(kind).size())));
            window.exportDialog()->close();
        }
        if (!good || !save_sheet(launch.screenshots, named)) {
            return 2;
        }
    }
    return 0;
}

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"
#include "app/desktop/main_window.h"
#include "app/desktop/settings.h"
#include "core/base/utf8.h"
#include "core/remote/address.h"
#include "views/common/style.h"
#include "views/figure/command.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QPixmap>
#include <QScreen>
#include <QTemporaryDir>
#include <QThread>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace Qt::StringLiterals;

namespace {

constexpr int no_display = 69; ///< EX_UNAVAILABLE; the script `run` then writes figures instead

int say_no_display(const char* found) {
    std::fprintf(stderr,
                 "ponderscope-desktop: %s; --screenshot and --figure work without a display, and so does "
                 "every verb of ponderscope.\n",
                 found);
    return no_display;
}

/// Qt's message handler while QApplication is constructed. Without a display, Qt warns and then aborts. This
/// handler prints one sentence with the warnings instead. With a display, drops the warnings.
void while_connecting(QtMsgType type, const QMessageLogContext& /*unused*/, const QString& message) {
    static QStringList said;
    if (type == QtFatalMsg) {
        const QString why = said.isEmpty() ? message.section(u'\n', 0, 0).simplified() : said.join(u"; "_s);
        std::_Exit(say_no_display(qPrintable(u"cannot open a window (%1)"_s.arg(why))));
    }
    if (type == QtWarningMsg && !message.startsWith(QLatin1String("Could not load the Qt platform plugin"))) {
        said << message.simplified();
    }
}

/// A screenshot is taken when the window was idle for quiet_ms.
constexpr qint64 quiet_ms = 400;
constexpr qint64 patience_ms = 60'000;

void say(const QString& sentence) {
    std::fprintf(stderr, "ponderscope-desktop: %s\n", ponderscope::visible(sentence.toStdString()).c_str());
}

/// Waits until the window is idle for quiet_ms. False, with a message: after patience_ms, or on an error.
bool settle(ponderscope::MainWindow& window) {
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
            say(u"the window did not load within a minute, so no screenshot was written."_s);
            return false;
        }
    }
    const QStringList errors = window.errors();
    if (!errors.isEmpty()) {
        say(errors.constFirst());
    }
    return errors.isEmpty();
}

/// Writes a screenshot of the idle window. Returns an exit code. Prints errors to stderr.
int write_screenshot(ponderscope::MainWindow& window, const ponderscope::Launch& launch) {
    if (!settle(window)) {
        return 2;
    }
    if (!window.grab().save(launch.screenshot, "PNG")) {
        say(u"cannot write %1. Check that its folder exists and is writable."_s.arg(launch.screenshot));
        return 2;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    using namespace ponderscope;
    std::signal(SIGXFSZ, SIG_IGN); // a file size limit becomes a write error, with its message
    if (figure::asks_for_figure(argc, argv)) {
        return figure::run_figure_command(argc, argv);
    }
    QStringList arguments;
    for (int i = 0; i < argc; ++i) {
        arguments << QString::fromLocal8Bit(argv[i]);
    }
    const Launch launch = parse_launch(arguments);
    if (launch.exitCode >= 0) {
        std::fprintf(
            launch.exitCode == 0 ? stdout : stderr, "%s%s\n",
            launch.exitCode == 0 ? "" : "ponderscope-desktop: ", qPrintable(launch.message.trimmed()));
        return launch.exitCode;
    }
    const bool picture = !launch.screenshot.isEmpty();
    if (picture) {
        // Screenshots are the same with and without a display.
        if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
            qputenv("QT_QPA_PLATFORM", "offscreen");
        }
        qputenv("QT_SCALE_FACTOR", QByteArray::number(launch.scale));
    } else if (qEnvironmentVariableIsEmpty("DISPLAY") && qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY") &&
               qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
        return say_no_display("there is no display");
    }
    QApplication::setDesktopSettingsAware(!picture);
    const QtMessageHandler usual = qInstallMessageHandler(while_connecting);
    QApplication application(argc, argv);
    qInstallMessageHandler(usual);
    // Qt has set the user's locale, but libraries cannot read numbers with a decimal comma.
    std::setlocale(LC_NUMERIC, "C");
    QApplication::setApplicationName(u"ponderscope-desktop"_s);
    QApplication::setApplicationDisplayName(u"Ponderscope"_s);
    Q_INIT_RESOURCE(icons);
    QIcon icon;
    for (const int pixels : {16, 22, 24, 32, 48, 64, 128, 256}) { // each size is drawn on whole pixels
        icon.addFile(u":/icons/ponderscope-%1.png"_s.arg(pixels));
    }
    QApplication::setWindowIcon(icon);
    QApplication::setDesktopFileName(u"ponderscope-desktop"_s);

    // A screenshot ignores the user's settings.
    std::optional<QTemporaryDir> fresh;
    std::optional<Settings> settings;
    if (picture) {
        fresh.emplace();
        settings.emplace(fresh->filePath(u"settings.ini"_s));
    } else {
        settings.emplace();
    }
    const Appearance appearance = launch.theme.value_or(picture ? Appearance::light : settings->appearance());
    Theme theme(appearance, system_prefers_dark());
    theme.setTextSize(settings->textSize());
    theme.setMagnitude(settings->magnitude());
    QApplication::setStyle(new Style(theme));
    const auto restyle = [&theme] {
        QApplication::setPalette(theme.qtPalette());
        QApplication::setFont(theme.body());
    };
    restyle();
    QObject::connect(&theme, &Theme::changed, &application, restyle);

    // Other threads wait for remote machines, and the window continues without them after a short time.
    remote::settings().patience = 2;
    remote::settings().terminal = false;
    MainWindow window(theme, *settings);
    window.start(launch);
    if (picture) {
        return write_screenshot(window, launch);
    }
    return QApplication::exec();
}

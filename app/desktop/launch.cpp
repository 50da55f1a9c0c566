// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"

#include "app/desktop/panels.h"
#include "views/text/quantity.h"

#include <QCommandLineParser>

#include <sqlite3.h>

using namespace Qt::StringLiterals;

namespace ponderscope {

QString version_text() {
    return u"Ponderscope %1\nQt %2\nSQLite %3"_s.arg(QStringLiteral(PONDERSCOPE_VERSION),
                                                     QString::fromLatin1(qVersion()),
                                                     QString::fromLatin1(sqlite3_libversion()));
}

Launch parse_launch(const QStringList& arguments) {
    Launch launch;
    QCommandLineParser parser;
    parser.setApplicationDescription(
        u"Shows how language models decide how long to think about each token.\n\nExample:\n  "
        "ponderscope-desktop story.ponder\n  ponderscope-desktop --screenshot window.png --theme dark "
        "--select-token 5 story.ponder\n  ponderscope-desktop --figure spec.json -o heatmap.pdf"_s);
    const QCommandLineOption help({u"h"_s, u"help"_s}, u"Shows this."_s);
    const QCommandLineOption version({u"v"_s, u"version"_s}, u"Shows versions."_s);
    const QCommandLineOption screenshot(u"screenshot"_s, u"Writes a screenshot of the window, then exits."_s,
                                        u"FILE.png"_s);
    const QCommandLineOption size(u"size"_s, u"Size of the window in a screenshot (default: 1440x900)."_s,
                                  u"WxH"_s);
    const QCommandLineOption scale(u"scale"_s, u"Screenshot pixels per window pixel (default: 1)."_s, u"N"_s);
    const QCommandLineOption theme(u"theme"_s, u"Theme: light, dark or contrast."_s, u"NAME"_s);
    const QCommandLineOption sequence(u"select-sequence"_s, u"Sequence to show, from 0."_s, u"N"_s);
    const QCommandLineOption token(u"select-token"_s, u"Token of the sequence to select, from 0."_s, u"N"_s);
    QStringList quantities;
    for (const QuantityInfo& one : token_quantities) {
        quantities << quantity_key(one.quantity);
    }
    const QCommandLineOption colour(u"colour"_s, quantities.join(u", "_s) + u'.', u"QUANTITY"_s);
    const QCommandLineOption difference(u"difference"_s, u"Colours the text by A minus B."_s);
    QStringList names;
    for (const Panel& panel : panels()) {
        names << QString::fromLatin1(panel.name);
    }
    const QCommandLineOption tab(u"tab"_s, u"Shows a panel (may be repeated): %1."_s.arg(names.join(u", "_s)),
                                 u"PANEL"_s);
    const QCommandLineOption figure(
        u"figure"_s, u"Draws a figure from its specification, without a window."_s, u"SPEC.json"_s);
    const QCommandLineOption output({u"o"_s, u"output"_s}, u"Figure file to write."_s,
                                    u"FILE.pdf|svg|png|tex|csv"_s);
    parser.addOptions({help, version, screenshot, size, scale, theme, sequence, token, colour, difference,
                       tab, figure, output});
    parser.addPositionalArgument(
        u"path"_s, u"Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders."_s, u"[path...]"_s);
    const auto wrong = [&launch](const QString& sentence) {
        launch.message = sentence;
        launch.exitCode = 2;
        return launch;
    };
    if (!parser.parse(arguments)) {
        return wrong(parser.errorText() + u" See --help."_s);
    }
    if (parser.isSet(help)) {
        // No application is made yet, by which the parser would know the program's name.
        const QString text = parser.helpText();
        launch.message = u"Usage: ponderscope-desktop"_s + text.mid(text.indexOf(u" ["));
        launch.exitCode = 0;
        return launch;
    }
    if (parser.isSet(version)) {
        launch.message = version_text();
        launch.exitCode = 0;
        return launch;
    }
    launch.paths = parser.positionalArguments();
    launch.screenshot = parser.value(screenshot);
    launch.theme = parser.value(theme);
    launch.quantity = parser.value(colour);
    launch.difference = parser.isSet(difference);
    launch.tabs = parser.values(tab);
    for (const QString& name : launch.tabs) {
        if (!names.contains(name)) {
            return wrong(u"--tab: expected one of %1, found '%2'."_s.arg(names.join(u", "_s), name));
        }
    }
    if (!launch.theme.isEmpty() && launch.theme != QLatin1String("light") &&
        launch.theme != QLatin1String("dark") && launch.theme != QLatin1String("contrast")) {
        return wrong(u"--theme: expected light, dark or contrast, found '%1'."_s.arg(launch.theme));
    }
    if (parser.isSet(size)) {
        const QStringList parts = parser.value(size).split(u'x');
        bool okWidth = false;
        bool okHeight = false;
        const int width = parts.value(0).toInt(&okWidth);
        const int height = parts.value(1).toInt(&okHeight);
        if (parts.size() != 2 || !okWidth || !okHeight || width < 640 || height < 400 || width > 8192 ||
            height > 8192) {
            return wrong(
                u"--size: expected WxH from 640x400 to 8192x8192, found '%1'."_s.arg(parser.value(size)));
        }
        launch.size = {width, height};
    }
    if (parser.isSet(scale)) {
        bool ok = false;
        launch.scale = parser.value(scale).toDouble(&ok);
        if (!ok || !(launch.scale >= 0.5 && launch.scale <= 4)) {
            return wrong(u"--scale: expected a number from 0.5 to 4, found '%1'."_s.arg(parser.value(scale)));
        }
    }
    const auto count = [&](const QCommandLineOption& option, std::optional<qint64>& target) {
        if (!parser.isSet(option)) {
            return true;
        }
        bool ok = false;
        target = parser.value(option).toLongLong(&ok);
        return ok && *target >= 0;
    };
    if (!count(token, launch.token)) {
        return wrong(u"--select-token: expected a number from 0, found '%1'."_s.arg(parser.value(token)));
    }
    if (!count(sequence, launch.sequence)) {
        return wrong(
            u"--select-sequence: expected a number from 0, found '%1'."_s.arg(parser.value(sequence)));
    }
    if (!launch.screenshot.isEmpty() &&
        !launch.screenshot.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) {
        return wrong(
            u"--screenshot: expected a file that ends in .png, found '%1'."_s.arg(launch.screenshot));
    }
    if (!launch.quantity.isEmpty() && !quantities.contains(launch.quantity)) {
        return wrong(
            u"--colour: expected one of %1, found '%2'."_s.arg(quantities.join(u", "_s), launch.quantity));
    }
    return launch;
}

} // namespace ponderscope

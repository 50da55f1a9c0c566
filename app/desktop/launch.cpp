// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"

#include "app/desktop/panels.h"
#include "views/common/translated.h"
#include "views/text/quantity.h"

#include <QCommandLineParser>

#include <sqlite3.h>

namespace ponderscope {

QString version_text() {
    return QStringLiteral("Ponderscope %1\nQt %2\nSQLite %3")
        .arg(QStringLiteral(PONDERSCOPE_VERSION), QString::fromLatin1(qVersion()),
             QString::fromLatin1(sqlite3_libversion()));
}

Launch parse_launch(const QStringList& arguments) {
    Launch launch;
    QCommandLineParser parser;
    parser.setApplicationDescription(
        tr("Shows how language models decide how long to think about each token.\n\nExample:\n  "
           "ponderscope-desktop story.ponder\n  ponderscope-desktop --screenshot window.png --theme dark "
           "--select-token 5 story.ponder\n  ponderscope-desktop --figure spec.json -o heatmap.pdf"));
    const QCommandLineOption help({QStringLiteral("h"), QStringLiteral("help")}, tr("Shows this."));
    const QCommandLineOption version({QStringLiteral("v"), QStringLiteral("version")}, tr("Shows versions."));
    const QCommandLineOption screenshot(QStringLiteral("screenshot"),
                                        tr("Writes a screenshot of the loaded window and ends."),
                                        QStringLiteral("FILE.png"));
    const QCommandLineOption size(
        QStringLiteral("size"), tr("Size of the window in a screenshot (1440x900)."), QStringLiteral("WxH"));
    const QCommandLineOption scale(QStringLiteral("scale"),
                                   tr("Pixels of the screenshot per pixel of the window (1)."),
                                   QStringLiteral("N"));
    const QCommandLineOption theme(QStringLiteral("theme"), tr("light, dark or contrast."),
                                   QStringLiteral("NAME"));
    const QCommandLineOption sequence(QStringLiteral("select-sequence"), tr("Sequence to show, from 0."),
                                      QStringLiteral("N"));
    const QCommandLineOption token(QStringLiteral("select-token"),
                                   tr("Token of the sequence to select, from 0."), QStringLiteral("N"));
    QStringList quantities;
    for (const QuantityInfo& one : token_quantities) {
        quantities << quantity_key(one.quantity);
    }
    const QCommandLineOption colour(QStringLiteral("colour"), quantities.join(QStringLiteral(", ")) + u'.',
                                    QStringLiteral("QUANTITY"));
    const QCommandLineOption difference(QStringLiteral("difference"), tr("Colour by A minus B."));
    QStringList names;
    for (const Panel& panel : panels()) {
        names << QString::fromLatin1(panel.name);
    }
    const QCommandLineOption tab(
        QStringLiteral("tab"),
        tr("Shows a panel; may be repeated: %1.").arg(names.join(QStringLiteral(", "))),
        QStringLiteral("PANEL"));
    const QCommandLineOption figure(QStringLiteral("figure"),
                                    tr("Draws a figure from its specification, without a window."),
                                    QStringLiteral("SPEC.json"));
    const QCommandLineOption output({QStringLiteral("o"), QStringLiteral("output")},
                                    tr("Figure file to write."), QStringLiteral("FILE.pdf|svg|png|tex|csv"));
    parser.addOptions({help, version, screenshot, size, scale, theme, sequence, token, colour,
                       difference, tab, figure, output});
    parser.addPositionalArgument(QStringLiteral("path"),
                                 tr("Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders."),
                                 QStringLiteral("[path...]"));
    const auto wrong = [&launch](const QString& sentence) {
        launch.message = sentence;
        launch.exitCode = 2;
        return launch;
    };
    if (!parser.parse(arguments)) {
        return wrong(parser.errorText() + QStringLiteral(" See --help."));
    }
    if (parser.isSet(help)) {
        // No application is made yet, by which the parser would know the program's name.
        const QString text = parser.helpText();
        launch.message = QStringLiteral("Usage: ponderscope-desktop") + text.mid(text.indexOf(u" ["));
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
            return wrong(
                tr("--tab: expected one of %1, found '%2'.").arg(names.join(QStringLiteral(", ")), name));
        }
    }
    if (!launch.theme.isEmpty() && launch.theme != QLatin1String("light") &&
        launch.theme != QLatin1String("dark") && launch.theme != QLatin1String("contrast")) {
        return wrong(tr("--theme: expected light, dark or contrast, found '%1'.").arg(launch.theme));
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
                tr("--size: expected WxH from 640x400 to 8192x8192, found '%1'.").arg(parser.value(size)));
        }
        launch.size = {width, height};
    }
    if (parser.isSet(scale)) {
        bool ok = false;
        launch.scale = parser.value(scale).toDouble(&ok);
        if (!ok || !(launch.scale >= 0.5 && launch.scale <= 4)) {
            return wrong(
                tr("--scale: expected a number from 0.5 to 4, found '%1'.").arg(parser.value(scale)));
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
        return wrong(tr("--select-token: expected a number from 0, found '%1'.").arg(parser.value(token)));
    }
    if (!count(sequence, launch.sequence)) {
        return wrong(
            tr("--select-sequence: expected a number from 0, found '%1'.").arg(parser.value(sequence)));
    }
    if (!launch.screenshot.isEmpty() &&
        !launch.screenshot.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) {
        return wrong(
            tr("--screenshot: expected a file that ends in .png, found '%1'.").arg(launch.screenshot));
    }
    if (!launch.quantity.isEmpty() && !quantities.contains(launch.quantity)) {
        return wrong(tr("--colour: expected one of %1, found '%2'.")
                         .arg(quantities.join(QStringLiteral(", ")), launch.quantity));
    }
    return launch;
}

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"

#include "app/desktop/panels.h"
#include "app/desktop/settings.h"
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
    QStringList quantities;
    for (const QuantityInfo& one : token_quantities) {
        quantities << quantity_key(one.quantity);
    }
    QStringList names;
    for (const Panel& panel : panels()) {
        names << QString::fromLatin1(panel.name);
    }
    QCommandLineParser parser;
    parser.setApplicationDescription(
        u"Shows how language models decide how long to think about each token.\n\nExample:\n  "
        "ponderscope-desktop story.ponder\n  ponderscope-desktop --screenshot window.png --theme dark "
        "--select-token 5 story.ponder\n  ponderscope-desktop --figure spec.json -o heatmap.pdf"_s);
    parser.addOptions(
        {{{u"h"_s, u"help"_s}, u"Shows this."_s},
         {{u"v"_s, u"version"_s}, u"Shows versions."_s},
         {u"screenshot"_s, u"Writes a screenshot of the window, then exits."_s, u"FILE.png"_s},
         {u"size"_s, u"Size of the window in a screenshot (default: 1440x900)."_s, u"WxH"_s},
         {u"scale"_s, u"Screenshot pixels per window pixel (default: 1)."_s, u"N"_s},
         {u"theme"_s, u"Theme: light, dark or contrast."_s, u"NAME"_s},
         {u"select-sequence"_s, u"Sequence to show; the first is 0."_s, u"N"_s},
         {u"select-token"_s, u"Token to select; the first is 0."_s, u"N"_s},
         {u"colour"_s, quantities.join(u", "_s) + u'.', u"QUANTITY"_s},
         {u"difference"_s, u"Colours the text by run A minus B."_s},
         {u"tab"_s, u"Shows a panel (may be repeated): %1."_s.arg(names.join(u", "_s)), u"PANEL"_s},
         {u"figure"_s, u"Draws a figure from its specification, without a window."_s, u"SPEC.json"_s},
         {{u"o"_s, u"output"_s}, u"Figure file to write."_s, u"FILE.pdf|svg|png|tex|csv"_s}});
    parser.addPositionalArgument(
        u"path"_s, u"Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders."_s, u"[path...]"_s);
    Launch launch;
    if (!parser.parse(arguments)) {
        launch.message = parser.errorText() + u" See --help."_s;
        launch.exitCode = 2;
        return launch;
    }
    if (parser.isSet(u"help"_s)) {
        // The parser does not know the program's name before an application object exists.
        const QString text = parser.helpText();
        launch.message = u"Usage: ponderscope-desktop"_s + text.mid(text.indexOf(u" ["));
        launch.exitCode = 0;
        return launch;
    }
    if (parser.isSet(u"version"_s)) {
        launch.message = version_text();
        launch.exitCode = 0;
        return launch;
    }
    // Only the first wrong value is reported.
    const auto check = [&launch](const QString& option, const QString& found, bool right,
                                 const QString& expected) {
        if (!right && launch.exitCode < 0) {
            launch.message = u"--%1: expected %2, found '%3'."_s.arg(option, expected, found);
            launch.exitCode = 2;
        }
    };
    launch.paths = parser.positionalArguments();
    launch.difference = parser.isSet(u"difference"_s);
    launch.tabs = parser.values(u"tab"_s);
    for (const QString& name : launch.tabs) {
        check(u"tab"_s, name, names.contains(name), u"one of %1"_s.arg(names.join(u", "_s)));
    }
    if (const QString name = parser.value(u"theme"_s); !name.isEmpty()) {
        launch.theme = appearance_called(name);
        check(u"theme"_s, name, launch.theme.value_or(Appearance::system) != Appearance::system,
              u"light, dark or contrast"_s);
    }
    if (parser.isSet(u"size"_s)) {
        const QString value = parser.value(u"size"_s);
        const QStringList parts = value.split(u'x');
        launch.size = {parts.value(0).toInt(), parts.value(1).toInt()};
        check(u"size"_s, value,
              parts.size() == 2 && launch.size.expandedTo({640, 400}).boundedTo({8192, 8192}) == launch.size,
              u"WxH from 640x400 to 8192x8192"_s);
    }
    if (parser.isSet(u"scale"_s)) {
        const QString value = parser.value(u"scale"_s);
        launch.scale = value.toDouble();
        check(u"scale"_s, value, launch.scale >= 0.5 && launch.scale <= 4, u"a number from 0.5 to 4"_s);
    }
    const auto count = [&](const QString& option, std::optional<qint64>& target) {
        if (parser.isSet(option)) {
            bool ok = false;
            target = parser.value(option).toLongLong(&ok);
            check(option, parser.value(option), ok && *target >= 0, u"a number from 0"_s);
        }
    };
    count(u"select-token"_s, launch.token);
    count(u"select-sequence"_s, launch.sequence);
    launch.screenshot = parser.value(u"screenshot"_s);
    check(u"screenshot"_s, launch.screenshot,
          launch.screenshot.isEmpty() || launch.screenshot.endsWith(u".png"_s, Qt::CaseInsensitive),
          u"a file that ends in .png"_s);
    launch.quantity = parser.value(u"colour"_s);
    check(u"colour"_s, launch.quantity, launch.quantity.isEmpty() || quantities.contains(launch.quantity),
          u"one of %1"_s.arg(quantities.join(u", "_s)));
    return launch;
}

} // namespace ponderscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"
#include "tests/views/text/text_stage.h"
#include "views/common/format.h"
#include "views/text/find_bar.h"
#include "views/text/legend.h"

#include <QApplication>
#include <QHelpEvent>
#include <QTest>
#include <QTextDocument>
#include <QToolTip>

#include <sqlite3.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::list_called;
using testing::Stage;

class TextAnnotationsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void annotationsAreColoursHitsAndLines() {
        Stage stage({.sequences = 2, .tokens = 60});
        auto* colour = list_called(stage.panel, u"Colour of the text"_s);
        const int before = colour->count();
        const auto annotate = [&](double of_token_3) {
            Annotation tag{"tag", true, {"NOUN", "VERB"}, {}};
            Annotation score{"score", false, {}, {}};
            for (int s = 0; s < 2; ++s) {
                tag.values.emplace_back(60, 0.0);
                tag.values.back()[3] = of_token_3;
                score.values.emplace_back(60, 0.5 * (s + 1));
            }
            stage.annotate({tag, score});
        };
        annotate(1);
        // They appear while the window is open.
        QTRY_COMPARE(colour->count(), before + 2);
        QCOMPARE(colour->itemText(before), u"score"_s);
        colour->setCurrentIndex(before + 1);
        QCOMPARE(stage.view().annotation(), u"tag"_s);
        QCOMPARE(stage.view().values().values[3], 1.0F);
        QCOMPARE(stage.panel.legend().classes(), (QStringList{u"NOUN"_s, u"VERB"_s}));
        QVERIFY(stage.panel.legend().meaning().contains(u"NOUN, VERB"_s));
        QVERIFY(stage.view().describe(3).contains(u"tag VERB"_s));
        QVERIFY(stage.view().describe(3).contains(u"score 0.5"_s));
        // The word stands on the colour of its class.
        const QImage picture = stage.view().viewport()->grab().toImage();
        const auto under = [&](qint64 token) {
            const QRectF box = stage.view().tokenRect(token);
            return picture.pixel(static_cast<int>(box.left()) + 2, static_cast<int>(box.center().y()));
        };
        QCOMPARE(under(3), stage.theme.classMap().table()[1]);
        QCOMPARE(under(4), stage.theme.classMap().table()[0]);
        stage.panel.findText(u"tag = \"VERB\""_s);
        QCOMPARE(stage.panel.findBar().hits(), (std::vector<qint64>{3}));
        stage.panel.findText(u"score > 0.4"_s);
        QCOMPARE(stage.panel.findBar().hits().size(), 60U);
        // Annotated anew: the colours and the hits are the new ones.
        stage.panel.findText(u"tag = VERB"_s);
        annotate(0);
        QTRY_VERIFY(stage.panel.findBar().hits().empty());
        QCOMPARE(stage.view().values().values[3], 0.0F);
        // A run that has none says so, and a quantity brings its colours back.
        stage.selection.setRunA(stage.run(1));
        QTRY_VERIFY(stage.panel.legend().meaning().contains(u"tag"_s));
        colour->setCurrentIndex(0);
        QVERIFY(stage.view().annotation().isEmpty());
        QVERIFY(stage.panel.legend().meaning().contains(u"surprise"_s));
        QCOMPARE(colour->count(), before);
        stage.selection.setSequence(1);
        // Taken away while they are shown.
        stage.selection.setRunA(stage.run(0));
        QTRY_COMPARE(colour->count(), before + 2);
        remove_annotations(stage.trace.toStdString(), *stage.data.run(stage.run(0)), {"tag", "score"});
        stage.data.refresh();
        QTRY_COMPARE(colour->count(), before);
    }

    void gainsAreWhiteAtZero() {
        Stage stage({.sequences = 2, .tokens = 60});
        Annotation gain{"nll_0_minus_last", false, {}, {}};
        gain.values.emplace_back(60, 0.015851072850637138);
        gain.values.emplace_back(60, 1.5);
        gain.values[0][3] = -2.25;
        gain.values[0][4] = 0;
        stage.annotate({gain});
        QTRY_VERIFY(stage.view().sequence()->annotation(u"nll_0_minus_last"_s) != nullptr);
        stage.panel.setAnnotation(u"nll_0_minus_last"_s);
        const TextView& view = stage.view();
        const auto colour = [&](std::size_t token) {
            return map_of(view.values(), stage.theme)
                .at(view.values().scale.position(static_cast<double>(view.values().values[token])));
        };
        QCOMPARE(view.values().scale.position(0), 0.5);
        const QColor nothing(colour(4));
        QVERIFY(nothing.lightness() >= 254);                          // white
        QVERIFY(QColor(colour(3)).green() > QColor(colour(3)).red()); // what lost
        // Tooltips: four digits at most, a line for each column.
        const QStringList lines = token_lines(view.sequence().get(), 5, view.values(), stage.selection, 0);
        QVERIFY(lines.contains(u"nll_0_minus_last +0.01585"_s));
        for (const QString& line : lines) {
            QVERIFY2(line.size() < 80, qPrintable(line));
        }
        // The sequence without a loss is drawn alike.
        stage.selection.setSequence(1);
        QTRY_VERIFY(view.sequence() && view.sequence()->sequence == 1);
        QVERIFY(view.values().diverging);
        QCOMPARE(view.values().scale.position(0), 0.5);
    }

    void classesThatLookLikeMarkupStandAsTheyAre() {
        Stage stage({.sequences = 1, .tokens = 60});
        Annotation tag{"tag", true, {"<b>bold</b>", "<img src=x>"}, {std::vector<double>(60, 1)}};
        stage.annotate({tag});
        auto* colour = list_called(stage.panel, u"Colour of the text"_s);
        QTRY_VERIFY(colour->findText(u"tag"_s) >= 0);
        colour->setCurrentIndex(colour->findText(u"tag"_s));
        QTRY_VERIFY(stage.panel.legend().meaning().contains(u"<b>bold</b>"_s));
        const QString tip = stage.panel.legend().toolTip();
        QVERIFY(Qt::mightBeRichText(tip)); // so it is taken for, and says the classes in words
        QTextDocument read;
        read.setHtml(tip);
        QCOMPARE(read.toPlainText().replace(QChar::Nbsp, u' '), stage.panel.legend().meaning());
        QCOMPARE(plain_tip(u"1 < 2, as it is\nsaid"_s), u"1 < 2, as it is\nsaid"_s);
        // What stands at a word.
        QHelpEvent help(QEvent::ToolTip, stage.view().tokenRect(12).center().toPoint(), QPoint(9, 9));
        QApplication::sendEvent(stage.view().viewport(), &help);
        const QString shown = QToolTip::text();
        Qt::mightBeRichText(shown) ? read.setHtml(shown) : read.setPlainText(shown);
        QVERIFY2(read.toPlainText().contains(u"<img"_s), qPrintable(QToolTip::text()));
        QToolTip::hideText();
    }

    void strangeAnnotationsAreNotShown() {
        Stage stage({.sequences = 1, .tokens = 60});
        write_file_atomically(annotations_path(stage.trace.toStdString()), std::string(200, 'x'));
        stage.data.refresh();
        QTRY_VERIFY(!stage.data.faults(stage.run(0)).isEmpty());
        QVERIFY(stage.view().sequence()->annotations.empty());
        QCOMPARE(stage.view().sequence()->tokens.size(), 60U);
    }

    void aLockOnTheAnnotationsKeepsNoTraceShut() {
        Stage first({.sequences = 1, .tokens = 60});
        Annotation score{"score", false, {}, {std::vector<double>(60, 1)}};
        const RunKey run = first.run(0);
        put_annotations(first.trace.toStdString(), *first.data.run(run), first.data.contents(run)->sequences,
                        {score});
        sqlite3* other = nullptr;
        const std::string beside = annotations_path(first.trace.toStdString()).string();
        QCOMPARE(sqlite3_open(beside.c_str(), &other), SQLITE_OK);
        QCOMPARE(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
        TraceData data;
        data.open(first.trace);
        QTRY_VERIFY(data.isOpen(first.trace));
        const QStringList faults = data.faults(run);
        QCOMPARE(faults.size(), 1);
        QTRY_VERIFY(data.sequence(run, 0));
        QVERIFY(data.sequence(run, 0)->annotations.empty());
        sqlite3_close(other);
    }
};

QTEST_MAIN(TextAnnotationsTest)
#include "text_annotations_test.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Near and far: one line a token, one pixel a token; two quantities at once; B on A's words; the list of
// hits.
#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/support/packed.h"
#include "tests/views/text/text_stage.h"
#include "views/common/format.h"
#include "views/text/corpus_map.h"
#include "views/text/find_bar.h"
#include "views/text/token_model.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QContextMenuEvent>
#include <QListView>
#include <QScrollBar>
#include <QTableView>

#include <cmath>
#include <set>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// With a run B.
struct Stage : testing::Stage {
    explicit Stage(const testing::SampleTrace& what = {.sequences = 3, .tokens = 500})
        : testing::Stage(what, false) {
        panel.resize(900, 600);
        selection.setRunB(run(1));
        testing::wait_for([&] { return panel.view().sequence() && !panel.isBusy() && data.idle(); });
    }
};

constexpr int quantities = static_cast<int>(std::size(token_quantities));
/// The column of B's NLL.
constexpr int of_b = TokenModel::first_quantity + quantities;

void wheel(QWidget* widget, int by, int sideways = 0) {
    testing::turn_wheel(widget, {40, 40}, {sideways, by}, Qt::ControlModifier);
}

} // namespace

class TextZoomTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void everyTokenIsARow() {
        Stage stage;
        TokenModel model(stage.context);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const auto block = stage.panel.view().sequence();
        model.show(block, nullptr, &stage.panel.view().values());
        QCOMPARE(model.rowCount(), 500);
        // The window shows a word's NLL at the word, where the trace has it with the token before.
        const QModelIndex nll = model.index(7, TokenModel::first_quantity);
        QCOMPARE(nll.data().toString(),
                 format_quantity(Quantity::nll, static_cast<double>(block->tokens.nll[6])));
        QCOMPARE(model.index(0, TokenModel::first_quantity).data().toString(),
                 format_quantity(Quantity::nll, std::nan("")));
        stage.selection.setAttribution(Attribution::predicting);
        QCOMPARE(nll.data().toString(),
                 format_quantity(Quantity::nll, static_cast<double>(block->tokens.nll[7])));
        QVERIFY(model.index(7, TokenModel::token_column).data(Qt::BackgroundRole).isValid());
        // A block that goes on adds rows; another one starts anew.
        auto longer = std::make_shared<SequenceData>(*block);
        longer->tokens = testing::equal_tokens(501);
        QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
        model.show(longer, nullptr, &stage.panel.view().values());
        QCOMPARE(inserted.size(), 1);
        QCOMPARE(model.rowCount(), 501);
        // Annotations are columns behind the quantities, the token's own.
        auto annotated = std::make_shared<SequenceData>(*longer);
        annotated->annotations = {{u"score"_s, false, {}, std::vector<double>(501, 0.1)},
                                  {u"tag"_s, true, {u"VERB"_s}, std::vector<double>(501, 0)}};
        const int before = model.columnCount();
        model.show(annotated, nullptr, &stage.panel.view().values());
        QCOMPARE(model.columnCount(), before + 2);
        QCOMPARE(model.headerData(before, Qt::Horizontal, Qt::DisplayRole).toString(), u"score"_s);
        QCOMPARE(model.index(7, before).data().toString(), u"0.1"_s);
        QCOMPARE(model.index(7, before + 1).data().toString(), u"VERB"_s);
        model.show(longer, nullptr, &stage.panel.view().values());
        QCOMPARE(model.columnCount(), before);
        model.show(nullptr, nullptr, nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void theTableSortsByAnyColumn() {
        Stage stage;
        stage.panel.setZoom(TextZoom::tokens);
        QTableView& table = stage.panel.table();
        auto* model = qobject_cast<TokenModel*>(table.model());
        const QAbstractItemModelTester tester(model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const auto block = stage.panel.view().sequence();
        const auto nll = [&](int row) {
            return block->tokens.nll[static_cast<std::size_t>(model->tokenOf(row) - 1)];
        };
        stage.selection.setToken(50);
        table.sortByColumn(TokenModel::first_quantity, Qt::DescendingOrder);
        for (int row = 1; row < 499; ++row) {
            QVERIFY(nll(row - 1) >= nll(row));
            QCOMPARE(model->rowOf(model->tokenOf(row)), row);
        }
        QCOMPARE(model->tokenOf(499), 0); // the first token has no NLL: last, either way
        QCOMPARE(model->tokenOf(table.currentIndex().row()), 50); // what was chosen stays chosen
        table.sortByColumn(TokenModel::first_quantity, Qt::AscendingOrder);
        QCOMPARE(model->tokenOf(499), 0);
        QVERIFY(nll(0) <= nll(1));
        table.selectRow(3);
        QCOMPARE(stage.selection.token(), model->tokenOf(3));
        table.sortByColumn(TokenModel::token_column, Qt::AscendingOrder);
        const auto word = [&](int row) {
            return token_bytes(block->tokens, block->text, static_cast<std::size_t>(model->tokenOf(row)));
        };
        QVERIFY(word(0) <= word(1) && word(1) <= word(400));
        // B's columns come with a B of the same tokens, and sort.
        stage.selection.setRunB({});
        const int before = model->columnCount();
        model->show(block, block, &stage.panel.view().values());
        QCOMPARE(model->columnCount(), before + quantities);
        QCOMPARE(model->headerData(of_b, Qt::Horizontal, Qt::DisplayRole).toString(), u"NLL of B"_s);
        table.sortByColumn(of_b, Qt::DescendingOrder);
        QVERIFY(nll(0) >= nll(1) && nll(1) >= nll(498));
        table.sortByColumn(-1, Qt::AscendingOrder);
        QCOMPARE(model->tokenOf(7), 7);
        auto other = std::make_shared<SequenceData>(*block);
        other->tokens.id[3] += 1;
        model->show(block, other, &stage.panel.view().values());
        QCOMPARE(model->columnCount(), before);
    }

    void theTableHasTheRunThatIsB() {
        Stage stage({.sequences = 1, .tokens = 300});
        const RunKey b = stage.selection.runB();
        stage.selection.setRunB({});
        stage.panel.setZoom(TextZoom::tokens);
        QTableView& table = stage.panel.table();
        auto* model = qobject_cast<TokenModel*>(table.model());
        const int alone = model->columnCount();
        stage.selection.setToken(50);
        // Nothing is coloured by B, and it is read when it is asked for: its columns come all the same.
        stage.selection.setRunB(b);
        QTRY_COMPARE(model->columnCount(), alone + quantities);
        QCOMPARE(table.currentIndex().row(), 50);
        const auto block = stage.data.sequence(b, 0);
        QCOMPARE(model->index(7, of_b).data().toString(),
                 format_quantity(Quantity::nll, static_cast<double>(block->tokens.nll[6])));
        // Sorted by a column of B, and B is another one: the order is that of the other.
        table.sortByColumn(of_b, Qt::DescendingOrder);
        stage.selection.setRunB(stage.run(0));
        QTRY_COMPARE(model->index(0, of_b).data(), model->index(0, TokenModel::first_quantity).data());
        const auto own = stage.panel.view().sequence();
        for (int row = 1; row < 299; ++row) {
            const auto nll = [&](int at) {
                return own->tokens.nll[static_cast<std::size_t>(model->tokenOf(at) - 1)];
            };
            QVERIFY(nll(row - 1) >= nll(row));
        }
        stage.selection.setRunB({});
        QTRY_COMPARE(model->columnCount(), alone);
    }

    void theMapGrowsWithARecording() {
        testing::ViewStage stage;
        const auto path = stage.folder / "t.ponder";
        const auto tokens = [](std::int64_t first, std::size_t count) {
            TokenColumns made = testing::equal_tokens(count);
            made.first = first;
            return made;
        };
        TraceWriter writer(path);
        RunInfo info;
        info.name = "grows";
        info.method = "vanilla";
        writer.begin_run(info, {});
        writer.begin_sequence("ids", "");
        writer.append(tokens(0, 100), {});
        QVERIFY(QTest::qWaitFor([&] {
            const TraceReader so_far = TraceReader::open(path);
            return so_far.runs().size() == 1 && so_far.runs()[0].tokens == 100;
        }));
        TextPanel panel(stage.context);
        panel.resize(800, 500);
        panel.show();
        stage.open(path);
        stage.selection.setRunA(stage.run(0));
        panel.setZoom(TextZoom::corpus);
        const auto last = [&] {
            qint64 most = -1;
            for (int y = 0; y < 100; ++y) {
                for (int x = 0; x < 800; ++x) {
                    most = std::max(most, panel.corpus().placeAt({x, y}).token);
                }
            }
            return most;
        };
        QTRY_COMPARE(last(), 99);
        QTRY_VERIFY(!panel.corpus().isBusy());
        // The rest comes at once with the end of the run, and nothing after it says so again.
        writer.append(tokens(100, 300), {});
        writer.end_sequence();
        writer.end_run(1);
        writer.finish();
        stage.data.refresh();
        QTRY_COMPARE(last(), 399);
    }

    void theWheelGoesFromTokensToTheMap() {
        Stage stage;
        stage.theme.setTextSize(48);
        wheel(stage.panel.view().viewport(), 120);
        QCOMPARE(stage.panel.zoom(), TextZoom::tokens);
        QCOMPARE(stage.panel.table().model()->rowCount(), 500);
        stage.panel.table().selectRow(42);
        QCOMPARE(stage.selection.token(), 42);
        stage.selection.setToken(77);
        QCOMPARE(stage.panel.table().currentIndex().row(), 77);
        wheel(stage.panel.table().viewport(), -120);
        QCOMPARE(stage.panel.zoom(), TextZoom::text);
        stage.theme.setTextSize(9);
        wheel(stage.panel.view().viewport(), -120);
        QCOMPARE(stage.panel.zoom(), TextZoom::corpus);
        stage.panel.corpus().setCell(8);
        wheel(stage.panel.corpus().viewport(), 0, 120); // sideways, or the end of a gesture
        wheel(stage.panel.corpus().viewport(), 0);
        QCOMPARE(stage.panel.corpus().cell(), 8);
        wheel(stage.panel.corpus().viewport(), 120);
        QCOMPARE(stage.panel.zoom(), TextZoom::text);
        stage.theme.setTextSize(20);
        for (const int sideways : {120, -120, 0}) {
            wheel(stage.panel.view().viewport(), 0, sideways);
        }
        QCOMPARE(stage.theme.textSize(), 20);
        stage.theme.setTextSize(9);
        // The same by keys.
        stage.panel.zoomOut();
        QCOMPARE(stage.panel.zoom(), TextZoom::corpus);
        stage.panel.zoomIn();
        QCOMPARE(stage.panel.zoom(), TextZoom::text);
    }

    void theMapHasAPixelForEveryToken() {
        Stage stage;
        stage.panel.resize(700, 500);
        stage.panel.setZoom(TextZoom::corpus);
        CorpusMap& map = stage.panel.corpus();
        QTRY_VERIFY(!map.isBusy());
        map.setCell(4);
        QTRY_VERIFY(map.placeAt(QPoint(20, 20)).sequence == 0);
        QCOMPARE(map.placeAt(QPoint(17, 17)).token, 0);
        QCOMPARE(map.placeAt(QPoint(21, 17)).token, 1);
        QCOMPARE(map.placeAt(QPoint(2, 2)).sequence, -1);
        // Every sequence is there; a click goes to the token.
        qint64 last = -1;
        QPoint somewhere;
        for (int y = 16; y < map.viewport()->height(); ++y) {
            const CorpusMap::Place at = map.placeAt(QPoint(40, y));
            if (at.sequence == 2) {
                somewhere = QPoint(40, y);
                last = at.token;
            }
        }
        QVERIFY(last >= 0);
        QTest::mouseClick(map.viewport(), Qt::LeftButton, {}, somewhere);
        QCOMPARE(stage.selection.sequence(), 2);
        QCOMPARE(stage.selection.token(), map.placeAt(somewhere).token);
        QVERIFY(!map.grab().isNull());
    }

    void theMapShowsTheDifferenceOnTheScaleOfTheLegend() {
        Stage stage;
        stage.panel.resize(700, 500);
        stage.panel.setZoom(TextZoom::corpus);
        CorpusMap& map = stage.panel.corpus();
        QTRY_VERIFY(!map.isBusy());
        const TextView& view = stage.panel.view();
        const auto colours = [&](const ColourMap& of) {
            int alike = 0;
            const TokenValues& values = view.values();
            for (std::size_t t = 1; t < values.values.size(); ++t) {
                const QColor drawn(map.colourOf(0, static_cast<qint64>(t)));
                const QColor meant(of.at(values.scale.position(static_cast<double>(values.values[t]))));
                // Two bytes a value are finer than a colour or two.
                alike +=
                    std::abs(drawn.red() - meant.red()) <= 3 && std::abs(drawn.blue() - meant.blue()) <= 3;
            }
            return alike;
        };
        QCOMPARE(colours(stage.theme.textMap()), 499);
        stage.panel.setDifference(true);
        QTRY_VERIFY(!map.isBusy() && view.values().difference && view.values().notice.isEmpty());
        QTRY_COMPARE(colours(stage.theme.differenceMap()), 499);
        // Other sequences are on the same scale, and blue-green where A is lower.
        const auto a = stage.data.sequence({stage.trace, 1}, 2);
        const auto b = stage.data.sequence({stage.trace, 2}, 2);
        QVERIFY(a && b);
        for (std::size_t row = 0; row + 1 < a->tokens.size(); ++row) {
            const double value = static_cast<double>(a->tokens.nll[row] - b->tokens.nll[row]);
            if (std::abs(value) > view.values().scale.high / 4) {
                const QColor drawn(map.colourOf(2, static_cast<qint64>(row) + 1));
                QCOMPARE(drawn.red() < drawn.green(), value < 0);
            }
        }
        stage.selection.setRunB({});
        QTRY_COMPARE(QColor(map.colourOf(0, 7)), stage.theme.colours().panel);
        stage.panel.setDifference(false);
        QTRY_COMPARE(colours(stage.theme.textMap()), 499);
    }

    void theMapForgetsWhatWasAnnotatedAnew() {
        testing::ViewStage stage;
        stage.open(stage.write("t.ponder", {.sequences = 3, .tokens = 200, .secondRun = false}));
        const QString path = stage.trace;
        QTRY_VERIFY(stage.data.sequence(stage.run(0), 0));
        TraceData data(nullptr, stage.data.cachedBytes() * 3 / 2); // one block is kept, two are not
        CorpusMap map(ViewContext{data, stage.selection, stage.theme});
        map.resize(700, 300);
        map.show();
        data.open(path);
        QTRY_VERIFY(data.isOpen(path));
        const RunInfo run = data.runs(path).front();
        const auto annotate = [&](double number) {
            Annotation tag{"tag", true, {"NOUN", "VERB"}, {}};
            tag.values.assign(3, std::vector<double>(200, number));
            put_annotations(path.toStdString(), run, data.contents({path, run.id})->sequences, {tag});
            data.refresh();
        };
        annotate(0);
        QTRY_VERIFY(data.idle());
        TokenValues tag;
        tag.annotation = u"tag"_s;
        tag.look(look_of(kind_of_annotation(tag.annotation, true), {}));
        map.setShown(tag);
        stage.selection.setRunA({path, run.id});
        const auto colours = [&] { // of a token of each sequence
            const QImage picture = map.viewport()->grab().toImage();
            std::set<QRgb> found;
            std::set<qint64> sequences;
            for (int y = 0; y < map.viewport()->height(); ++y) {
                const CorpusMap::Place at = map.placeAt(QPoint(40, y));
                if (at.sequence >= 0 && sequences.insert(at.sequence).second) {
                    found.insert(picture.pixel(40, y + 1));
                }
            }
            return sequences.size() == 3 ? found : std::set<QRgb>();
        };
        const auto of_class = [&](std::size_t number) {
            return std::set<QRgb>{stage.theme.classMap().table()[number]};
        };
        QTRY_VERIFY(!map.isBusy() && colours() == of_class(0));
        annotate(1);
        QTRY_VERIFY(!map.isBusy() && colours() == of_class(1));
    }

    void aSecondQuantityAndTheOtherRun() {
        Stage stage;
        TextView& view = stage.panel.view();
        const QImage ticks = view.viewport()->grab().toImage();
        stage.panel.setBars(Quantity::entropy);
        QCOMPARE(view.bars(), std::optional(Quantity::entropy));
        const QImage bars = view.viewport()->grab().toImage();
        QVERIFY(ticks != bars);
        stage.panel.setBars(std::nullopt);
        QVERIFY(view.viewport()->grab().toImage() != bars);
    }

    void theListOfHits() {
        Stage stage;
        HitModel& model = stage.panel.findBar().model();
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        stage.panel.findText(u"the"_s);
        stage.panel.findBar().setListed(true);
        QVERIFY(model.rowCount() > 3);
        QCOMPARE(model.rowCount(), static_cast<int>(stage.panel.findBar().hits().size()));
        const QModelIndex second = model.index(1);
        QVERIFY(second.data().toString().contains(u"the"_s, Qt::CaseInsensitive));
        QVERIFY(model.indexOf(second.data(HitModel::TokenRole).toLongLong()).row() == 1);
        auto* list = stage.panel.findBar().findChild<QListView*>();
        list->setCurrentIndex(second);
        QCOMPARE(stage.selection.token(), second.data(HitModel::TokenRole).toLongLong());
        QVERIFY(!stage.panel.grab().isNull());
        stage.panel.findBar().close();
        QCOMPARE(model.rowCount(), 0);
    }

    void theMenuIsAskedForAWord() {
        Stage stage;
        QSignalSpy wanted(&stage.panel.view(), &TextView::menuWanted);
        const QPoint place = stage.panel.view().tokenRect(6).center().toPoint();
        QContextMenuEvent event(QContextMenuEvent::Mouse, place,
                                stage.panel.view().viewport()->mapToGlobal(place));
        QApplication::sendEvent(stage.panel.view().viewport(), &event);
        QCOMPARE(wanted.size(), 1);
        QCOMPARE(wanted[0][0].toLongLong(), 6);
    }
};

QTEST_MAIN(TextZoomTest)
#include "text_zoom_test.moc"

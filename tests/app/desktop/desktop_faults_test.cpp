// SPDX-License-Identifier: GPL-3.0-or-later
// Wrong input while the window is open: traces that change under it, numbers that cannot be, texts that would
// write over their surroundings, an engine that dies.
#include "tests/app/desktop/desktop_stage.h"
#include "views/common/format.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/text/corpus_map.h"

#include <sqlite3.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

/// Writes into a trace as nobody should.
void plant(const QString& path, const QByteArray& sql) {
    sqlite3* database = nullptr;
    QCOMPARE(sqlite3_open(path.toUtf8().constData(), &database), SQLITE_OK);
    char* error = nullptr;
    const int code = sqlite3_exec(database, sql.constData(), nullptr, nullptr, &error);
    const QByteArray said(error == nullptr ? "" : error);
    sqlite3_free(error);
    sqlite3_close(database);
    QVERIFY2(code == SQLITE_OK, said.constData());
}

/// Every view is drawn once with what is open.
void look(Stage& stage) {
    for (const char* panel : {"heatmap", "depth", "halting", "lab", "compare", "pareto", "inspector"}) {
        stage.window.raisePanel(QString::fromLatin1(panel));
        QCoreApplication::processEvents();
        QVERIFY(!stage.window.grab().isNull());
    }
    for (const TextZoom zoom : {TextZoom::tokens, TextZoom::corpus, TextZoom::text}) {
        stage.window.text().setZoom(zoom);
        QCoreApplication::processEvents();
        QVERIFY(!stage.window.grab().isNull());
    }
}

} // namespace

class DesktopFaultsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void aWatchedFileIsSaidOnce() {
        using enum TraceWatch::Event;
        const Stage stage;
        const QString path = stage.folder.filePath(u"a.ponder"_s);
        const auto write = [&](const QByteArray& bytes) { stage.write(path, bytes); };
        TraceWatch watch;
        // The event of one look, which the next look does not repeat.
        const auto seen = [&]() -> std::optional<TraceWatch::Event> {
            const auto changes = watch.check({path}, TraceWatch::look({path}));
            const bool again = !watch.check({path}, TraceWatch::look({path})).isEmpty();
            return changes.size() != 1 || again ? std::nullopt : std::optional(changes[0].event);
        };
        write("12345");
        QVERIFY(seen() == moved); // it may have grown since it was opened
        write("1234567");
        QVERIFY(seen() == moved);
        write("12");
        QVERIFY(seen() == shrunk);
        QTest::qSleep(20); // file systems count in ticks
        const QString annotations = stage.write(u"a.ponder.annotations"_s, "12x"); // what lies beside it, too
        QVERIFY(seen() == moved);
        // The trace is written after its annotations were: when these go, that is seen all the same.
        QTest::qSleep(20);
        write("12");
        QVERIFY(seen() == moved);
        QVERIFY(QFile::remove(annotations));
        QVERIFY(seen() == moved);
        QVERIFY(QFile::remove(path));
        QVERIFY(seen() == gone);
        write("123");
        QVERIFY(seen() == replaced);
        const QString other = stage.write(u"b.ponder"_s, "123");
        QVERIFY(QFile::remove(path) && QFile::rename(other, path));
        QVERIFY(seen() == replaced);
        QVERIFY(watch.check({}, {}).isEmpty());
    }

    void aTraceThatIsLostStaysOnTheScreen_data() {
        QTest::addColumn<bool>("removed");
        QTest::newRow("removed") << true;
        QTest::newRow("shorter") << false;
    }
    void aTraceThatIsLostStaysOnTheScreen() {
        QFETCH(const bool, removed);
        Stage stage;
        const QString path = stage.make(u"gone.ponder"_s);
        QVERIFY(stage.shows(path));
        QVERIFY(testing::looks(stage.window, 1));
        QVERIFY(removed ? QFile::remove(path) : QFile::resize(path, QFileInfo(path).size() / 3));
        const char* id = removed ? "trace.removed" : "trace.shorter";
        QVERIFY(testing::says(stage.window, id, path));
        QVERIFY(stage.window.text().view().sequence());
        stage.window.selection().setSequence(1); // not read before: what is left says what it says
        QTRY_VERIFY(stage.window.data().idle());
        look(stage);
        // Read and closed, the message does not come back.
        stage.window.messages().clear();
        QVERIFY(testing::looks(stage.window, 2));
        QVERIFY(!stage.window.messages().has(id));
    }

    void aTraceThatIsReplacedIsReadAgain() {
        Stage stage;
        const QString path = stage.make(u"now.ponder"_s, {.sequences = 2, .tokens = 300});
        const QString other = stage.make(u"next.ponder"_s, {.seed = 5, .sequences = 1, .tokens = 90});
        QVERIFY(stage.shows(path));
        QVERIFY(testing::looks(stage.window, 1));
        QVERIFY(QFile::remove(path) && QFile::rename(other, path));
        QVERIFY(testing::says(stage.window, "trace.replaced", u"now.ponder"_s));
        QTRY_VERIFY(stage.window.text().view().sequence() &&
                    stage.window.text().view().sequence()->tokens.size() == 90);
        look(stage);
    }

    void absurdCountsAreNotBelieved_data() {
        QTest::addColumn<QByteArray>("sql");
        QTest::newRow("sizes") << QByteArray(
            "UPDATE run SET max_steps = 4, layers = 1000000000000, vocab_size = 1000000000000;"
            "UPDATE sequence SET tokens = 1000000000000;");
        QTest::newRow("steps") << QByteArray(
            "UPDATE run SET max_steps = 1000000000000;"); // not drawn one by one
    }
    void absurdCountsAreNotBelieved() {
        QFETCH(const QByteArray, sql);
        Stage stage;
        const QString path = stage.make(u"absurd.ponder"_s);
        plant(path, sql);
        stage.window.resize(1200, 850);
        stage.window.show();
        stage.window.open(path);
        QTRY_VERIFY(stage.window.data().isOpen(path) || !stage.window.errors().isEmpty());
        QTRY_VERIFY(stage.window.data().idle());
        QElapsedTimer time;
        time.start();
        look(stage);
        QVERIFY2(time.elapsed() < 20'000, qPrintable(QString::number(time.elapsed())));
    }

    void aDamagedSequenceIsNotReadForEver() {
        Stage stage;
        const QString path = stage.make(u"damaged.ponder"_s);
        {
            QFile file(path);
            QVERIFY(file.open(QIODevice::ReadWrite));
            const qint64 size = file.size();
            QVERIFY(file.seek(size / 2));
            file.write(QByteArray(static_cast<qsizetype>(size - size / 2), 'x'));
        }
        stage.window.show();
        stage.window.open(path);
        QTRY_VERIFY(stage.window.data().isOpen(path));
        stage.window.selection().setSequence(1);
        QVERIFY(testing::says(stage.window, "trace.unreadable"));
        const auto* inspector = stage.window.findChild<InspectorView*>();
        QTRY_VERIFY(stage.window.data().isUnreadable(stage.window.selection().runA(), 1));
        const QString why = why_no_sequence(stage.window.data(), stage.window.selection());
        QTRY_VERIFY(stage.window.text().view().accessibleDescription().contains(why));
        QTRY_COMPARE(inspector->report().hint, why);
    }

    void numbersThatAreNoneAreShownAsNone() {
        Stage stage;
        const QString path = stage.make(u"nan.ponder"_s);
        plant(path, "UPDATE token_row SET nll = 9e999 WHERE rowid % 3 = 0;"
                    "UPDATE token_row SET nll = NULL WHERE rowid % 3 = 1;"
                    "UPDATE token_row SET entropy = -9e999, rank = -5, steps = -3, flops = -1;");
        stage.window.show();
        stage.window.open(path);
        QTRY_VERIFY(stage.window.data().isOpen(path) || !stage.window.errors().isEmpty());
        QTRY_VERIFY(stage.window.data().idle());
        for (const QuantityInfo& one : token_quantities) {
            stage.window.text().setQuantity(one.quantity);
            stage.window.text().setBars(one.quantity);
            look(stage);
        }
    }

    void missingSignalsAreSaidByTheirViews() {
        Stage stage;
        const QString path = stage.make(
            u"basic.ponder"_s, {.sequences = 1, .tokens = 100, .secondRun = false, .withSignals = false});
        QVERIFY(stage.shows(path));
        look(stage);
        QVERIFY2(stage.window.errors().isEmpty(), qPrintable(stage.window.errors().join(u' ')));
    }

    void viewsAndTriggersFromStrangersNeverRun() {
        Stage stage;
        const QString path = stage.make(u"planted.ponder"_s);
        plant(path, "CREATE VIEW report AS SELECT randomblob(1000000000) FROM run;"
                    "CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM token_row; END;");
        QVERIFY(stage.shows(path));
        look(stage);
        QCOMPARE(static_cast<int>(stage.window.text().view().sequence()->tokens.size()), 400);
    }

    void textsCannotWriteOverTheirSurroundings() {
        Stage stage;
        const QString path = stage.make(
            u"hostile.ponder"_s,
            {.sequences = 1,
             .secondRun = false,
             .texts = {"safe \xE2\x80\xAE"
                       "evil \x1B[31m red \x07 \xE2\x81\xA6 isolate \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D "
                       "\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85 "
                       "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87 "
                       "\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 e\xCC\x81 end"}});
        QVERIFY(stage.shows(path));
        const auto block = stage.window.text().view().sequence();
        for (std::size_t i = 0; i < block->tokens.size(); ++i) {
            const QString label = visible_text(token_bytes(block->tokens, block->text, i));
            for (const QChar c : label) {
                QVERIFY(c.unicode() != 0x202e && c.unicode() != 0x2066 && c.unicode() != 0x1b &&
                        c.unicode() != 0x07);
            }
        }
        look(stage);
    }

    void anEngineThatDiesLeavesTheSequencesDone() {
        Stage stage;
        const QString path = stage.make(u"dying.ponder"_s, {.sequences = 2, .tokens = 80, .complete = false});
        stage.window.show();
        stage.window.runs().recorder().setProgram(
            stage.program(u"engine.sh"_s,
                          "echo '{\"activity\":\"recording\",\"done\":80,\"total\":160,\"unit\":\"tokens\"}' "
                          ">&2\nkill -9 $$\n"));
        RecordRequest request;
        request.checkpoint = stage.folder.path();
        request.trace = path;
        stage.window.runs().recorder().start(request);
        QVERIFY(testing::says(stage.window, "recording.died", path));
        QTRY_VERIFY(stage.window.data().isOpen(path));
        QVERIFY(stage.settle());
        QVERIFY(stage.window.text().view().sequence());
        // The trace says it to whoever opens it later.
        const RunInfo cut = stage.window.data().runs(path).back();
        QVERIFY(!cut.complete);
        QTRY_VERIFY(!stage.window.data().faults({path, cut.id}).isEmpty());
        look(stage);
    }
};

QTEST_MAIN(DesktopFaultsTest)
#include "desktop_faults_test.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// While a run grows, nothing moves that the user looks at: selection, scrolling, open lists, editors,
// comparisons.
#include "app/desktop/top_bar.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/common/live_view.h"
#include "views/compare/compare_view.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/token_report.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"
#include "views/library/sequence_model.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

/// A sequence whose tokens are the bytes of \p text.
void put_sequence(TraceWriter& writer, const std::string& title, const std::string& text) {
    writer.begin_sequence(title, text);
    TokenColumns columns;
    for (std::size_t t = 0; t < text.size(); ++t) {
        columns.id.push_back(text[t]);
        columns.begin.push_back(t);
        columns.end.push_back(t + 1);
        columns.nll.push_back(t + 1 < text.size() ? 2.0F : std::nanf(""));
        columns.entropy.push_back(1);
        columns.max_probability.push_back(0.5F);
        columns.rank.push_back(t + 1 < text.size() ? 2 : 0);
        columns.steps.push_back(0);
        columns.flops.push_back(1000);
    }
    writer.append(std::move(columns), {});
    writer.end_sequence();
}

/// Another program that records short sequences into a trace, a run that is never ended while it lives.
class Growing {
public:
    /// Pauses 10 ms after \p every sequences.
    Growing(const QString& path, int sequences, int every = 10)
        : thread_([this, path = path.toStdString(), sequences, every](const std::stop_token& stop) {
              write(path, sequences, every, stop);
          }) {}
    [[nodiscard]] int written() const { return written_; }

private:
    void write(const std::string& path, int sequences, int every, const std::stop_token& stop) {
        TraceWriter writer(path);
        RunInfo info;
        info.name = "growing";
        info.method = "vanilla";
        info.checkpoint = "/models/tiny";
        writer.begin_run(info, {});
        const std::string text = "a few words that say little";
        for (int i = 0; i < sequences && !stop.stop_requested(); ++i) {
            put_sequence(writer, "sequence " + std::to_string(i), text);
            written_ = i + 1;
            if (i % every == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
        while (!stop.stop_requested()) { // the run stays open
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    std::atomic<int> written_ = 0;
    std::jthread thread_;
};

constexpr int without_end = 1'000'000; ///< sequences: it grows for as long as it lives

/// The longest time between two turns of the event loop, in ms.
class Watchdog : public QObject {
public:
    Watchdog() {
        connect(&timer_, &QTimer::timeout, this, [this] {
            const double now = computed();
            longest_ = std::max(longest_, static_cast<double>(clock_.nsecsElapsed()) / 1e6);
            busiest_ = std::max(busiest_, now - before_);
            before_ = now;
            clock_.start();
        });
        clock_.start();
        timer_.start(1);
    }
    [[nodiscard]] double longest() const { return longest_; }
    /// What this thread computed in it: the same on a machine that does other things, too.
    [[nodiscard]] double busiest() const { return busiest_; }

private:
    static double computed() {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
    }
    QTimer timer_;
    QElapsedTimer clock_;
    double before_ = computed();
    double longest_ = 0;
    double busiest_ = 0;
};

/// Opens the editor of a run's name and types into it.
QLineEdit* rename(Stage& stage, const RunKey& run, const QString& typed) {
    LibraryPanel& library = stage.window.panel<LibraryPanel>();
    library.runs().edit(library.model().indexOf(run));
    auto* editor = library.runs().findChild<QLineEdit*>();
    if (editor != nullptr) {
        editor->setText(typed);
    }
    return editor;
}

} // namespace

class DesktopUnmovedTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void whoWorksElsewhereIsLeftAlone() {
        const int more = qEnvironmentVariableIntValue("PONDERSCOPE_SEQUENCES");
        const int sequences = more > 0 ? more : 5000;
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1400, 900);
        const QString path = stage.make(u"looked_at.ponder"_s, {.sequences = 60, .tokens = 300});
        QVERIFY(stage.shows(path));
        window.raisePanel(u"compare"_s);
        QTRY_VERIFY(window.panel<CompareView>().comparison() != nullptr &&
                    !window.panel<CompareView>().isBusy());
        const RunKey a = window.selection().runA();
        const RunKey b = window.selection().runB();
        QVERIFY(b.isValid());
        window.selection().setRunB({}); // nothing to compare with
        QTRY_VERIFY(!window.isBusy());
        window.selection().setSequence(2);
        window.selection().setToken(17);
        QTRY_VERIFY(!window.isBusy());
        QScrollBar* list = window.panel<LibraryPanel>().sequences().verticalScrollBar();
        QTRY_VERIFY(list->maximum() > 300);
        list->setValue(list->maximum() / 2);
        QScrollBar* text = window.text().view().verticalScrollBar();
        QTRY_VERIFY(text->maximum() > 0);
        text->setValue(text->maximum());
        QLineEdit* editor = rename(stage, b, u"half a na"_s);
        QVERIFY(editor != nullptr);

        const QString grows = stage.folder.filePath(u"grows.ponder"_s);
        Growing growing(grows, sequences, std::max(10, sequences / 500));
        QTRY_VERIFY(growing.written() > 50);
        window.open(grows); // which selects nothing in it
        QTRY_VERIFY(window.data().isOpen(grows) && !window.data().runs(grows).empty());
        const RunKey run{grows, window.data().runs(grows).front().id};
        const auto comparison = window.panel<CompareView>().comparison();
        const ViewState state = window.session().viewState();
        QCOMPARE(state.a, a);
        QVERIFY(!state.b.isValid());
        const int scrolled = list->value();
        const int read = text->value();
        QSignalSpy compares(&window.panel<CompareView>(), &CompareView::busyChanged);
        QSignalSpy chosen(&window.selection(), &Selection::runsChanged);
        Watchdog watchdog;
        QVERIFY(testing::comes(
            [&] { return window.data().sequences(run).size() == static_cast<std::size_t>(sequences); }));
        qInfo("%d sequences: the event loop turned at the latest after %.1f ms, of which it computed %.1f ms",
              sequences, watchdog.longest(), watchdog.busiest());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        QVERIFY2(watchdog.busiest() < 30, "the window is blocked");
#endif

        QVERIFY(window.session().viewState() == state);
        QCOMPARE(chosen.size(), 0);
        QCOMPARE(list->value(), scrolled);
        QCOMPARE(text->value(), read);
        QCOMPARE(compares.size(), 0);
        QCOMPARE(window.panel<CompareView>().comparison(), comparison);
        QCOMPARE(window.panel<LibraryPanel>().runs().findChild<QLineEdit*>(), editor);
        QCOMPARE(editor->text(), u"half a na"_s);
        // A run that comes to the front commits nothing that is typed by half.
        window.selection().setRunA(run);
        QTest::qWait(50);
        QCOMPARE(window.panel<LibraryPanel>().runs().findChild<QLineEdit*>(), editor);
        QTest::keyClick(editor, Qt::Key_Escape);
        QTRY_VERIFY(window.panel<LibraryPanel>().runs().currentIndex() ==
                    window.panel<LibraryPanel>().model().indexOf(run));
        QCOMPARE(window.data().run(b)->name, std::string("vanilla-1m"));
    }

    void openListsKeepTheirMark() {
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1400, 900);
        const QString path = stage.make(u"lists.ponder"_s);
        QVERIFY(stage.shows(path));
        const QString grows = stage.folder.filePath(u"grows.ponder"_s);
        Growing growing(grows, without_end);
        QTRY_VERIFY(growing.written() > 50);
        window.open(grows);
        QTRY_VERIFY(window.data().isOpen(grows) && !window.data().runs(grows).empty());
        const RunKey run{grows, window.data().runs(grows).front().id};
        QList<QComboBox*> boxes{&window.topBar().runA(), &window.topBar().runB()};
        for (QComboBox* box : window.panel<HeatmapView>().findChildren<QComboBox*>()) {
            if (box->isVisible() && box->count() > 2) {
                boxes << box;
            }
        }
        QVERIFY(boxes.size() > 2);
        for (QComboBox* box : boxes) {
            box->showPopup();
            QAbstractItemView* view = box->view();
            const int marked = box->currentIndex() == 0 ? 1 : 0;
            view->setCurrentIndex(box->model()->index(marked, box->modelColumn()));
            const QVariant data = view->currentIndex().data(Qt::UserRole);
            const std::size_t before = window.data().sequences(run).size();
            QTRY_VERIFY(window.data().sequences(run).size() > before);
            QVERIFY(view->isVisible());
            QCOMPARE(view->currentIndex().row(), marked);
            QVERIFY(view->currentIndex().data(Qt::UserRole) == data);
            box->hidePopup();
        }
        // A run that comes while a list is open is added to it, and takes nothing from it.
        QComboBox& list = window.topBar().runA();
        list.showPopup();
        list.view()->setCurrentIndex(list.model()->index(1, 0));
        const RunKey marked = list.view()->currentIndex().data(Qt::UserRole).value<RunKey>();
        const int count = list.count();
        testing::write_sample_trace(path.toStdString(), {.sequences = 2, .tokens = 60, .secondRun = false});
        QTRY_COMPARE(list.count(), count + 1);
        QVERIFY(list.view()->isVisible());
        QVERIFY(list.view()->currentIndex().data(Qt::UserRole).value<RunKey>() == marked);
    }

    void theGrowingRunItselfStaysWhereItIsRead() {
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1400, 900);
        window.show();
        const QString grows = stage.folder.filePath(u"grows.ponder"_s);
        Growing growing(grows, without_end);
        QTRY_VERIFY(growing.written() > 400);
        window.open(grows);
        QVERIFY(stage.settle());
        const RunKey run = window.selection().runA();
        QCOMPARE(run.trace, grows);
        QTRY_VERIFY(window.data().sequences(run).size() > 400);
        window.selection().setSequence(3);
        QTRY_VERIFY(window.text().view().sequence());
        window.selection().setToken(5);
        QScrollBar* list = window.panel<LibraryPanel>().sequences().verticalScrollBar();
        QTRY_VERIFY(list->maximum() > 2000);
        list->setValue(1500);
        QLineEdit* editor = rename(stage, run, u"mine"_s);
        QVERIFY(editor != nullptr);
        const auto block = window.text().view().sequence();
        for (int grown = 0; grown < 4; ++grown) {
            const std::size_t before = window.data().sequences(run).size();
            QTRY_VERIFY(window.data().sequences(run).size() > before);
        }
        QCOMPARE(list->value(), 1500);
        QCOMPARE(editor->text(), u"mine"_s);
        QCOMPARE(window.selection().sequence(), 3);
        QCOMPARE(window.selection().token(), 5);
        QCOMPARE(window.text().view().sequence(), block);
        QCOMPARE(window.panel<LibraryPanel>().sequenceModel().rowCount(),
                 static_cast<int>(window.data().sequences(run).size()));
    }

    void aRunWithoutTheSequenceShowsOneThatItHas() {
        // A long run is looked at, far in; the one that takes its place has not begun yet.
        Stage stage;
        MainWindow& window = stage.window;
        QVERIFY(stage.shows(stage.make(u"long.ponder"_s, {.sequences = 40, .tokens = 60})));
        window.selection().setSequence(33);
        const QString grows = stage.folder.filePath(u"grows.ponder"_s);
        {
            TraceWriter writer(grows.toStdString());
            RunInfo info;
            info.name = "empty so far";
            info.method = "vanilla";
            writer.begin_run(info, {});
            window.open(grows);
            QTRY_VERIFY(window.data().isOpen(grows) && !window.data().runs(grows).empty());
            window.selection().setRunA({grows, window.data().runs(grows).front().id});
            QCOMPARE(window.selection().sequence(), 0);
            QTRY_COMPARE(token_report(window.data(), window.selection()).hint,
                         why_no_sequence(window.data(), window.selection())); // it is not being read
            put_sequence(writer, "first", "ab");
            writer.end_run(1);
        }
        QTRY_VERIFY(window.text().view().sequence());
        QCOMPARE(window.text().view().sequence()->sequence, 0);
    }
};

QTEST_MAIN(DesktopUnmovedTest)
#include "desktop_unmoved_test.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of runs: what ifs go into Scratch, and runs are kept, renamed and removed. With the
// real program on a checkpoint of the test's own.
#include "app/desktop/branches.h"
#include "app/desktop/think_panel.h"
#include "core/trace/reader.h"
#include "core/trace/tools/run_edits.h"
#include "tests/app/desktop/engine_stage.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::EngineStage {
    Stage() : EngineStage(1) {}
    [[nodiscard]] bool recordAs(const QString& name, const QString& policy) const {
        return record(policy, {u"--name"_s, name});
    }
    [[nodiscard]] bool open() {
        return recordAs(u"one"_s, u"full"_s) && recordAs(u"two"_s, u"fixed:n=1"_s) && shows(trace());
    }
    /// Chooses from the menu of a run in the Library.
    bool choose(const RunKey& key, const QString& begin) {
        QMenu menu;
        window.panel<LibraryPanel>().fillMenu(menu, window.panel<LibraryPanel>().model().indexOf(key));
        for (QAction* action : menu.actions()) {
            if (action->text().startsWith(begin)) {
                action->trigger();
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] std::string nameOf(const RunKey& key) {
        const RunInfo* run = window.data().run(key);
        return run != nullptr ? run->name : std::string();
    }
    [[nodiscard]] QStringList names(const QString& of) {
        QStringList all;
        for (const RunInfo& run : window.data().runs(of)) {
            all << QString::fromStdString(run.name);
        }
        return all;
    }
    [[nodiscard]] QString said() { return window.messages().sentences().join(u' '); }
    [[nodiscard]] bool says(const char* id, const QString& part = {}) {
        return testing::says(window, id, part);
    }
    [[nodiscard]] QString scratch() { return window.runs().scratch(); }
};

} // namespace

class DesktopRunsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { QStandardPaths::setTestModeEnabled(true); }

    void questionsGoIntoScratchAndTheTraceStaysAsItWas() {
        Stage stage;
        QVERIFY(stage.open());
        const QAbstractItemModelTester tester(&stage.window.panel<LibraryPanel>().model());
        const QByteArray before = Stage::read(stage.trace());
        const RunKey one{stage.trace(), 1};
        stage.window.selection().setRunA(one);
        QVERIFY(stage.settle());
        stage.window.whatIf().giveSteps(9, 1);
        const auto compared = [&](qint64 run) {
            return testing::comes([&] {
                return stage.window.selection().runA() == RunKey{stage.scratch(), run} &&
                       stage.window.text().view().showsDifference();
            });
        };
        QVERIFY2(compared(1), qPrintable(stage.said()));
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runB(), one);

        // A second question about the same run, from the run itself.
        stage.window.selection().setRunA(one);
        stage.window.selection().setRunB({stage.trace(), 2});
        QVERIFY(stage.settle());
        stage.window.whatIf().giveSteps(12, 0);
        QVERIFY2(compared(2), qPrintable(stage.said()));
        QVERIFY(stage.settle());
        const RunKey second = stage.window.selection().runA();
        QCOMPARE(stage.window.selection().runB(), one);
        QVERIFY(stage.nameOf(second).find("at 11") != std::string::npos);

        QVERIFY(Stage::read(stage.trace()) == before);
        const QModelIndex row = stage.window.panel<LibraryPanel>().model().indexOf({stage.scratch(), 0});
        QCOMPARE(row.data().toString(), u"Temporary"_s);
        QCOMPARE(row.data(LibraryModel::DetailRole).toString(), u"not saved"_s);
        QVERIFY(!stage.settings.recent().contains(stage.scratch()));
    }

    void branchesFormATreeThatIsSaved() {
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1440, 900);
        window.show();
        window.runs().thinker().setProgram(QStringLiteral(PONDERSCOPE_PROGRAM));
        ThinkRequest request;
        request.checkpoint = stage.folder.filePath(u"model"_s);
        request.prompt = u"The ferry"_s;
        request.tokens = 12;
        request.temperature = 1;
        window.runs().showThink();
        ThinkPanel& panel = window.runs().thinkPanel();
        panel.setRequest(request);
        panel.findChild<QTabWidget*>()->setCurrentWidget(&panel.branches());
        window.runs().think(request);
        const RunKey root{stage.scratch(), 1};
        const auto shows = [&](const RunKey& a) {
            return testing::comes([&] {
                return window.selection().runA() == a && !window.runs().thinker().isRunning() &&
                       !window.isBusy() && window.text().view().sequence() &&
                       window.text().view().sequence()->run == a;
            });
        };
        const auto ids = [&] { return window.text().view().sequence()->tokens.id; };
        // Clicks the first candidate that was not chosen; its id.
        const auto click = [&](qint64 token) {
            window.selection().setToken(token);
            QTreeWidget& list = panel.branches().candidates();
            if (!testing::comes([&] { return list.topLevelItemCount() == 10 && list.isEnabled(); })) {
                return -1;
            }
            for (int i = 0; i < 10; ++i) {
                QTreeWidgetItem* item = list.topLevelItem(i);
                const int id = item->data(0, Qt::UserRole).toInt();
                if (id != ids()[static_cast<std::size_t>(token)]) {
                    list.scrollToItem(item);
                    QTest::mouseClick(list.viewport(), Qt::LeftButton, {},
                                      list.visualItemRect(item).center());
                    return id;
                }
            }
            return -1;
        };
        QVERIFY(shows(root));
        const std::vector<std::int32_t> first = ids();
        const auto candidates = [&](qint64 row) {
            std::vector<BranchCandidate> found;
            (void)testing::comes([&] {
                found = branch_candidates(window.data(), window.selection(), row);
                return !found.empty();
            });
            return found;
        };
        const std::vector<BranchCandidate> drawn = candidates(12);
        QCOMPARE(drawn.size(), std::size_t{10});
        QVERIFY(drawn[0].before > 0 && std::abs(drawn[0].after - drawn[0].before) < 1e-5); // nothing cut
        const std::vector<BranchCandidate> given = candidates(3);
        QCOMPARE(given.size(), std::size_t{10});
        QVERIFY(std::isnan(given[0].after));

        const int forced = click(13);
        QVERIFY(forced >= 0);
        const RunKey branch{stage.scratch(), 2};
        QVERIFY2(shows(branch), qPrintable(stage.said()));
        QCOMPARE(window.selection().runB(), root);
        QCOMPARE(ids().size(), std::size_t{26});
        QVERIFY(std::equal(first.begin(), first.begin() + 13, ids().begin()));
        QCOMPARE(ids()[13], forced);
        // Run B is followed where it has the same tokens.
        QCOMPARE(panel.branches().tree().topLevelItemCount(), 1);
        QCOMPARE(panel.branches().tree().topLevelItem(0)->childCount(), 1);
        QVERIFY(panel.branches().tree().topLevelItem(0)->child(0)->text(0).startsWith(u"13: "_s));

        QVERIFY(click(20) >= 0);
        const RunKey second{stage.scratch(), 3};
        QVERIFY2(shows(second), qPrintable(stage.said()));
        QCOMPARE(window.selection().runB(), branch);
        const auto parents = [&](const RunKey& run) {
            std::vector<int> all;
            for (const BranchNode& node : branch_tree(window.data(), run)) {
                all.push_back(node.parent);
            }
            return all;
        };
        QCOMPARE(parents(root), (std::vector<int>{-1, 0, 1}));
        // Keys of the tree: B compares, Enter shows.
        QTreeWidget& tree = panel.branches().tree();
        tree.setCurrentItem(tree.topLevelItem(0));
        QTest::keyClick(&tree, Qt::Key_B);
        QCOMPARE(window.selection().runB(), root);
        QCOMPARE(window.selection().runA(), second);
        tree.setCurrentItem(tree.topLevelItem(0)->child(0));
        QTest::keyClick(&tree, Qt::Key_Return);
        QCOMPARE(window.selection().runA(), branch);

        const QString saved = stage.folder.filePath(u"tree.ponder"_s);
        for (QPushButton* button : panel.branches().findChildren<QPushButton*>()) {
            button->click();
        }
        QVERIFY(stage.chooseFile(u"keep"_s, saved));
        QVERIFY(stage.says("edit.done", saved));
        window.open(saved);
        QTRY_VERIFY(window.data().runs(saved).size() == 3);
        QCOMPARE(parents({saved, 3}), (std::vector<int>{-1, 0, 1}));
        QCOMPARE(branch_tree(window.data(), {saved, 3}).back().run, (RunKey{saved, 3}));
    }

    void aScratchRunIsKeptInATraceOfTheUsersChoice() {
        Stage stage;
        QVERIFY(stage.open());
        stage.window.whatIf().giveSteps(9, 1);
        QTRY_VERIFY(stage.window.selection().runA().trace == stage.scratch());
        QVERIFY(stage.settle());
        const RunKey asked = stage.window.selection().runA();
        for (const QString& target : {stage.folder.filePath(u"new.ponder"_s), stage.trace()}) {
            QVERIFY(stage.choose(asked, u"Save to Trace"_s));
            const auto* dialog = stage.window.findChild<QFileDialog*>(u"keep"_s);
            QCOMPARE(dialog->directory().absolutePath(), QFileInfo(stage.trace()).absolutePath());
            QVERIFY(stage.chooseFile(u"keep"_s, target));
            QVERIFY(stage.says("edit.done", target));
            const std::vector<RunInfo> runs = TraceReader::open(target.toStdString()).runs();
            QCOMPARE(runs.back().name, stage.nameOf(asked));
        }
        QTRY_COMPARE(stage.names(stage.trace()).size(), 3);
        // Removed from Scratch it gives its number to the next one, which nobody has kept.
        QVERIFY(stage.choose(asked, u"Remove from Trace"_s));
        QVERIFY(stage.press(u"Remove"_s));
        QTRY_VERIFY(stage.names(stage.scratch()).isEmpty());
        stage.window.selection().setRunA({stage.trace(), 1});
        QVERIFY(stage.settle());
        stage.window.whatIf().giveSteps(9, 2);
        QTRY_VERIFY(stage.window.selection().runA() == asked);
        QVERIFY(stage.settle());
        stage.window.close();
        QVERIFY(stage.window.isVisible());
        QVERIFY(stage.window.findChild<QMessageBox*>(u"scratchLeft"_s) != nullptr);
    }

    void aRunIsRenamedWhereItStands() {
        Stage stage;
        QVERIFY(stage.open());
        QTreeView& tree = stage.window.panel<LibraryPanel>().runs();
        const RunKey two{stage.trace(), 2};
        QVERIFY(stage.choose(two, u"Rename"_s));
        auto* editor = tree.viewport()->findChild<QLineEdit*>();
        QVERIFY(editor != nullptr);
        QCOMPARE(editor->text(), u"two"_s);
        editor->setText(u"one step"_s);
        QTest::keyClick(editor, Qt::Key_Return);
        QTRY_COMPARE(stage.names(stage.trace()), (QStringList{u"one"_s, u"one step"_s}));
        // A name that is taken is refused with a sentence.
        LibraryModel& model = stage.window.panel<LibraryPanel>().model();
        model.setData(model.indexOf(two), u"one"_s, Qt::EditRole);
        QVERIFY(stage.says("edit.failed", u"'one'"_s));
        QCOMPARE(stage.names(stage.trace()).last(), u"one step"_s);
    }

    void aRunIsRemovedAfterAQuestion() {
        Stage stage;
        QVERIFY(stage.open());
        const RunKey one{stage.trace(), 1};
        const RunKey two{stage.trace(), 2};
        stage.window.selection().setRunA(two);
        stage.window.selection().setRunB(one);
        QVERIFY(stage.settle());
        QVERIFY(stage.choose(one, u"Remove from Trace"_s));
        QVERIFY(stage.press(u"Cancel"_s));
        QCOMPARE(stage.names(stage.trace()).size(), 2);
        QVERIFY(stage.choose(one, u"Remove from Trace"_s));
        QVERIFY(stage.press(u"Remove"_s));
        QTRY_COMPARE(stage.names(stage.trace()), QStringList{u"two"_s});
        QCOMPARE(stage.window.selection().runA(), two); // keeps its number
        QVERIFY(!stage.window.selection().runB().isValid());
        QVERIFY(stage.settle());
        QVERIFY(testing::looks(stage.window, 2)); // nobody else replaced the file
        QVERIFY2(stage.said().isEmpty(), qPrintable(stage.said()));
    }

    void anotherWindowWasFaster() {
        Stage stage;
        QVERIFY(stage.open());
        const RunKey one{stage.trace(), 1};
        QVERIFY(stage.choose(one, u"Remove from Trace"_s));
        remove_run(stage.trace().toStdString(), *stage.window.data().run(one));
        QVERIFY(stage.press(u"Remove"_s));
        QVERIFY(stage.says("edit.failed", u"'one'"_s));
        QTRY_COMPARE(stage.names(stage.trace()), QStringList{u"two"_s});
    }

    void aChangeOfALeavesPlaceBAndPanelsWhereTheyAre() {
        Stage stage;
        stage.writeStory(60);
        QVERIFY(stage.recordAs(u"three"_s, u"fixed:n=2"_s));
        QVERIFY(stage.open());
        stage.window.resize(1100, 690);
        stage.window.docks().arrange();
        const RunKey three{stage.trace(), 1};
        const RunKey one{stage.trace(), 2};
        const RunKey two{stage.trace(), 3};
        stage.window.selection().setRunA(one);
        stage.window.selection().setRunB(two);
        QVERIFY(stage.settle());
        stage.window.selection().setToken(900);
        QTRY_VERIFY(stage.window.text().view().firstVisibleToken() > 0);
        const qint64 first = stage.window.text().view().firstVisibleToken();
        const auto docks = [&] {
            QMap<QString, QRect> all;
            for (const QDockWidget* dock : stage.window.docks().docks()) {
                if (!dock->visibleRegion().isEmpty()) {
                    all[dock->objectName()] = dock->geometry();
                }
            }
            return all;
        };
        const QMap<QString, QRect> before = docks();
        stage.window.selection().setRunA(three);
        QVERIFY(stage.settle());
        QVERIFY(testing::looks(stage.window, 1));
        QCOMPARE(stage.window.selection().runB(), two);
        QCOMPARE(stage.window.selection().token(), qint64{900});
        QCOMPARE(stage.window.text().view().firstVisibleToken(), first);
        QCOMPARE(docks(), before);
    }

    void aClosedTraceStaysClosed() {
        Stage stage;
        QVERIFY(stage.open());
        stage.window.whatIf().giveSteps(9, 1);
        QTRY_VERIFY(stage.window.selection().runA().trace == stage.scratch());
        QVERIFY(stage.settle());
        for (const QString& trace : {stage.scratch(), stage.trace()}) {
            QVERIFY(stage.choose({trace, 0}, u"Close Trace"_s));
            QVERIFY(!stage.window.data().isOpen(trace));
        }
        QVERIFY(testing::looks(stage.window, 3));
        QVERIFY(stage.window.data().traces().isEmpty());
        QVERIFY(!stage.window.selection().runA().isValid() && !stage.window.selection().runB().isValid());

        // Nor does one come back that is closed while it opens.
        stage.window.open(stage.trace());
        stage.window.data().close(stage.trace());
        QVERIFY(testing::looks(stage.window, 1));
        QTRY_VERIFY(stage.window.data().idle());
        QCoreApplication::processEvents();
        QVERIFY(stage.window.data().traces().isEmpty());
    }

    void aScratchFolderThatCannotBeWrittenIsOneSentence() {
        QTemporaryFile file;
        QVERIFY(file.open());
        QStandardPaths::setTestModeEnabled(false);
        const QByteArray cache = qgetenv("XDG_CACHE_HOME");
        qputenv("XDG_CACHE_HOME", file.fileName().toUtf8());
        Stage stage;
        QStandardPaths::setTestModeEnabled(true);
        cache.isEmpty() ? qunsetenv("XDG_CACHE_HOME") : qputenv("XDG_CACHE_HOME", cache);
        QVERIFY(stage.open());
        const RunKey a = stage.window.selection().runA();
        stage.window.whatIf().giveSteps(9, 1);
        QVERIFY(!stage.window.runs().recorder().isRunning());
        QCOMPARE(stage.window.messages().ids(), QStringList{u"scratch.not-ready"_s});
        QVERIFY2(stage.says("scratch.not-ready", file.fileName()), qPrintable(stage.said()));
        QCOMPARE(stage.window.selection().runA(), a);
    }
};

QTEST_MAIN(DesktopRunsTest)
#include "desktop_runs_test.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The start: every kind of stored window with every kind of argument; where the window stands afterwards.
#include "app/desktop/launch.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/top_bar.h"
#include "tests/app/desktop/desktop_stage.h"

#include <utility>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

/// What a window of this size and state leaves behind.
std::pair<QByteArray, QByteArray> stored(Theme& theme, const QSize& size, Qt::WindowStates state,
                                         const QPoint& at = {40, 60}) {
    QTemporaryDir folder;
    Settings settings(folder.filePath(u"stored.ini"_s));
    {
        MainWindow window(theme, settings);
        window.resize(size);
        window.move(at);
        window.show();
        QTest::qWait(20);
        window.setWindowState(state);
        QTest::qWait(20);
        window.findChild<QDockWidget*>(u"compare"_s)->hide();
        window.close();
    }
    return {settings.geometry(), settings.layout()};
}

} // namespace

class DesktopGeometryTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void everyStartIsSound_data() {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<int>("state");
        QTest::addColumn<QPoint>("at");
        const std::pair<const char*, Qt::WindowStates> states[] = {{"normal", Qt::WindowNoState},
                                                                   {"maximised", Qt::WindowMaximized},
                                                                   {"full", Qt::WindowFullScreen}};
        for (const QSize size : {QSize(700, 480), QSize(1024, 680), QSize(1440, 900), QSize(3000, 2000)}) {
            for (const auto& [name, state] : states) {
                QTest::addRow("%d x %d %s", size.width(), size.height(), name)
                    << size << static_cast<int>(state) << QPoint(40, 60);
            }
        }
        QTest::newRow("minimised") << QSize(1024, 680) << static_cast<int>(Qt::WindowMinimized)
                                   << QPoint(40, 60);
        QTest::newRow("on a screen that is gone")
            << QSize(1024, 680) << static_cast<int>(Qt::WindowNoState) << QPoint(9000, 7000);
        QTest::newRow("nothing stored") << QSize() << 0 << QPoint();
        QTest::newRow("garbage") << QSize(0, 0) << 0 << QPoint();
    }

    void everyStartIsSound() {
        QFETCH(const QSize, size);
        QFETCH(const int, state);
        QFETCH(const QPoint, at);
        Theme theme(Appearance::light);
        testing::spare_the_log();
        QStandardPaths::setTestModeEnabled(true);
        QTemporaryDir folder;
        const QString trace = folder.filePath(u"one.ponder"_s);
        testing::write_sample_trace(trace.toStdString(), {.sequences = 2, .tokens = 60});
        const QString session = folder.filePath(u"one.ponder-session"_s);
        QVERIFY(QDir(folder.path()).mkpath(u"checkpoint"_s));
        std::pair<QByteArray, QByteArray> left;
        if (size.isValid() && !size.isEmpty()) {
            left = stored(theme, size, Qt::WindowStates(state), at);
            QVERIFY(!left.first.isEmpty());
        } else if (size.isValid()) {
            left = {QByteArray("no geometry"), QByteArray("\x00\x00\x00\xff\xfd no layout", 18)};
        }
        {
            // A session with a layout of its own, of a window of another size.
            Settings settings(folder.filePath(u"session.ini"_s));
            MainWindow window(theme, settings);
            window.resize(1100, 760);
            window.show();
            window.open(trace);
            QVERIFY(testing::comes([&] { return !window.isBusy(); }));
            window.findChild<QDockWidget*>(u"heatmap"_s)->hide();
            window.selection().setToken(7);
            QVERIFY(window.session().saveSessionTo(session));
        }
        const QStringList arguments[] = {{},
                                         {trace},
                                         {trace + u"#vanilla-1m"_s},
                                         {session},
                                         {session, trace},
                                         {folder.filePath(u"missing.ponder"_s)},
                                         {folder.filePath(u"checkpoint"_s)}};
        for (const QStringList& paths : arguments) {
            Settings settings(folder.filePath(u"settings.ini"_s));
            settings.setWindow(left.first, left.second);
            MainWindow window(theme, settings);
            Launch launch;
            launch.paths = paths;
            window.start(launch);
            QVERIFY(testing::comes([&] { return !window.isBusy(); }));
            QTest::qWait(200); // Qt puts layouts of maximised windows back for 150 ms
            const QString words = paths.join(u' ');
            const bool opens = words.contains(u"one.ponder"_s);
            QCOMPARE(window.selection().runA().isValid(), opens);
            QVERIFY(window.screen()->virtualGeometry().intersects(window.frameGeometry()));
            QVERIFY(window.screen()->availableGeometry().width() >= window.width());
            QVERIFY(!window.grab().isNull());
            if (window.runs().recordDialog() != nullptr) {
                window.runs().recordDialog()->close();
            } else if (!opens) {
                // Nothing lies over the welcome page.
                const QTextBrowser& welcome = window.greeting().welcome();
                QVERIFY2(welcome.isVisible(), qPrintable(words));
                for (const QPoint part : {welcome.rect().center(), QPoint(30, 30),
                                          welcome.rect().bottomRight() - QPoint(30, 30)}) {
                    const QWidget* top = window.childAt(welcome.mapTo(&window, part));
                    QVERIFY2(top == &welcome || welcome.isAncestorOf(top), qPrintable(words));
                }
            } else {
                QVERIFY2(!window.greeting().welcome().isVisible(), qPrintable(words));
            }
            if (paths.contains(session)) {
                QTRY_COMPARE(window.selection().token(), 7);
                QVERIFY(!window.findChild<QDockWidget*>(u"heatmap"_s)->isVisible());
            } else if (!left.first.isEmpty() && size.isValid() && !size.isEmpty()) {
                QVERIFY(!window.findChild<QDockWidget*>(u"compare"_s)->isVisible());
            }
            if (opens) {
                QVERIFY(window.text().isVisible());
            }
            window.close();
        }
    }

    void aWindowStaysWhereItWas() {
        Theme theme(Appearance::light);
        testing::spare_the_log();
        QTemporaryDir folder;
        Settings settings(folder.filePath(u"settings.ini"_s));
        QRect first;
        for (int time = 0; time < 5; ++time) {
            MainWindow window(theme, settings);
            if (time == 0) {
                window.resize(700, 500);
            }
            window.start({});
            QVERIFY(QTest::qWaitForWindowExposed(&window));
            if (time <= 1) { // the first one may stand with its frame off the screen
                first = window.geometry();
            }
            QCOMPARE(window.geometry(), first);
            window.close();
        }
    }

    void runsAreNamedOnce() {
        // Of runs that are named together the first is A and the second B; whoever names one later means A.
        Stage stage;
        const QString path = stage.make(u"named.ponder"_s);
        const QString other = stage.make(u"other.ponder"_s);
        const QString vanilla = u"#vanilla-1m"_s;
        const QString ada = u"#adaponderlm-1m"_s;
        Launch launch;
        launch.paths = {path + vanilla, other + ada, other + vanilla};
        stage.window.start(launch);
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA(), (RunKey{path, 2}));
        QCOMPARE(stage.window.selection().runB(), (RunKey{other, 1}));
        for (const QString& later : {other + vanilla, path + ada, other + ada}) {
            QVERIFY(stage.shows(later));
            QCOMPARE(stage.window.selection().runA().trace, later.section(u'#', 0, 0));
            QCOMPARE(QString::fromStdString(stage.window.data().run(stage.window.selection().runA())->name),
                     later.section(u'#', 1));
        }
        stage.window.open(path + u"#nobody"_s);
        QVERIFY(testing::says(stage.window, "trace.unreadable", u"nobody"_s));
        QCOMPARE(stage.window.errors().size(), 1);
        QCOMPARE(stage.window.selection().runA(), (RunKey{other, 1}));
    }

    void quitClosesEveryWindow() {
        Stage stage;
        stage.window.show();
        Settings settings(stage.folder.filePath(u"second.ini"_s));
        MainWindow second(stage.theme, settings);
        second.show();
        const QMenu* file = second.topBar().menus().actions().constFirst()->menu();
        file->actions().constLast()->trigger(); // Quit
        QVERIFY(!second.isVisible());
        QVERIFY(!stage.window.isVisible());
    }

    void whatIsShownBeforeTheWindowIsNotLost() {
        // Stored and closed before it was ever on the screen.
        Theme theme(Appearance::light);
        testing::spare_the_log();
        QTemporaryDir folder;
        Settings settings(folder.filePath(u"settings.ini"_s));
        const auto left = stored(theme, {1200, 800}, Qt::WindowNoState);
        settings.setWindow(left.first, left.second);
        {
            MainWindow window(theme, settings);
            window.close();
        }
        QCOMPARE(settings.layout(), left.second);
    }
};

QTEST_MAIN(DesktopGeometryTest)
#include "desktop_geometry_test.moc"

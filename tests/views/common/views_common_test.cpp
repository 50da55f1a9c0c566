// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/view_stage.h"
#include "views/common/colour_map.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/selection.h"
#include "views/common/style.h"
#include "views/common/task.h"
#include "views/common/theme.h"
#include "views/common/value_look.h"

#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QSpinBox>
#include <QTabBar>
#include <QToolButton>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// Relative luminance and contrast as WCAG 2.1 defines them.
double luminance(const QColor& colour) {
    const auto linear = [](double c) {
        return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
           0.0722 * linear(colour.blueF());
}

double contrast(const QColor& a, const QColor& b) {
    const double high = std::max(luminance(a), luminance(b));
    const double low = std::min(luminance(a), luminance(b));
    return (high + 0.05) / (low + 0.05);
}

} // namespace

class ViewsCommonTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void viridisHasItsPublishedEnds() {
        QCOMPARE(ColourMap::magnitude(MagnitudeMap::viridis).at(0), qRgb(0x44, 0x01, 0x54));
        QCOMPARE(ColourMap::magnitude(MagnitudeMap::viridis).at(1), qRgb(0xfd, 0xe7, 0x25));
        QCOMPARE(ColourMap::magnitude(MagnitudeMap::cividis).at(0), qRgb(0x00, 0x22, 0x4e));
        QCOMPARE(ColourMap::magnitude(MagnitudeMap::cividis).at(1), qRgb(0xfe, 0xe8, 0x38));
    }

    void magnitudesGetLighterAllTheWay() {
        for (const ColourMap& map :
             {ColourMap::magnitude(MagnitudeMap::viridis), ColourMap::magnitude(MagnitudeMap::cividis)}) {
            for (std::size_t i = 1; i < 256; ++i) {
                QVERIFY(luminance(QColor(map.table()[i])) >= luminance(QColor(map.table()[i - 1])) - 0.004);
            }
        }
    }

    void textStaysReadableOnEveryColour_data() {
        QTest::addColumn<Appearance>("appearance");
        QTest::addColumn<double>("least");
        QTest::newRow("light") << Appearance::light << 4.5;
        QTest::newRow("dark") << Appearance::dark << 4.5;
        QTest::newRow("contrast") << Appearance::contrast << 7.0;
    }
    void textStaysReadableOnEveryColour() {
        QFETCH(Appearance, appearance);
        QFETCH(double, least);
        const Theme theme(appearance);
        const Palette& colours = theme.colours();
        for (const ColourMap* map : {&theme.textMap(), &theme.differenceMap(), &theme.classMap()}) {
            for (const QRgb colour : map->table()) {
                const double ratio = contrast(QColor(colour), colours.text);
                QVERIFY2(ratio >= 4.5, qPrintable(QString::number(ratio)));
            }
        }
        for (const auto& [text, ground] :
             {std::pair(colours.text, colours.panel), std::pair(colours.soft, colours.panel),
              std::pair(colours.text, colours.selected), std::pair(colours.errorText, colours.errorPanel),
              std::pair(colours.warningText, colours.warningPanel)}) {
            QVERIFY2(
                contrast(text, ground) >= least,
                qPrintable(u"%1 on %2: %3"_s.arg(text.name(), ground.name()).arg(contrast(text, ground))));
        }
    }

    void zeroHasThePanelsColour() {
        for (const Appearance appearance : {Appearance::light, Appearance::dark}) {
            const Theme theme(appearance);
            QCOMPARE(theme.textMap().at(0), theme.colours().panel.rgb());
            QCOMPARE(QColor(theme.differenceMap().at(0.5)).lightness() / 4,
                     theme.colours().panel.lightness() / 4);
        }
    }

    void scalesKeepNothingNothing() {
        const ColourScale linear{0, 8, false};
        QCOMPARE(linear.position(4), 0.5);
        QCOMPARE(linear.position(99), 1.0);
        QCOMPARE(linear.position(-1), 0.0);
        QVERIFY(std::isnan(linear.position(std::nan(""))));
        QCOMPARE(linear.position(std::numeric_limits<double>::infinity()), 1.0);
        const ColourScale ranks{1, 10'000, true};
        QCOMPARE(ranks.position(100), 0.5);
        QCOMPARE(ranks.position(0), 0.0);
        const ColourScale flat{3, 3, false};
        QCOMPARE(flat.position(3), 0.0);
        QCOMPARE(ColourScale::symmetric(2).position(0), 0.5);
    }

    void oneLookForEveryNumber() {
        using enum NumberKind;
        const auto look = [](ValueKind kind, std::vector<float> values) {
            const float largest = *std::max_element(
                values.begin(), values.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
            values.insert(values.end(), 200, largest); // more than the few that a scale may leave out
            return look_of(kind, spread_of(std::span<const float>(values)));
        };
        // What a step gained is a difference, whether or not a token lost by it.
        const ValueKind gain = kind_of_annotation(u"nll_0_minus_last"_s, false);
        for (const ValueLook& one :
             {look(gain, {0, 1.2F, 14}), look(gain, {-0.5F, 1.2F, 14}),
              look({plain, false, 0}, {-0.5F, 1.2F, 14}), look({nats, true, 0}, {0.5F, 14}),
              look(kind_of_signal({"log_ratio", {"token", "step"}, "nats", "", ""}), {-14, 3})}) {
            QVERIFY(one.diverging && one.isSigned());
            QCOMPARE(one.scale.position(0), 0.5); // white at 0
            QCOMPARE(one.scale.low, -one.scale.high);
            QCOMPARE(one.end(one.scale.low), u"−15"_s);
            QCOMPARE(one.end(0), u"0"_s);
            QCOMPARE(one.end(one.scale.high), u"+15"_s);
        }
        QCOMPARE(look(gain, {-1, 1}).text(-0.015851072850637138), u"−0.01585"_s);
        QCOMPARE(look(gain, {-1, 1}).text(0.25), u"+0.25"_s);
        QCOMPARE(look({nats, true, 0}, {-1, 1}).text(0.001), u"0.00"_s);
        QVERIFY(!look({plain, false, 0}, {0, 3}).diverging);
        QCOMPARE(look({plain, false, 0}, {0, 3}).end(3), u"3"_s);
        QCOMPARE(look({operations, true, 0}, {-2e6F, 2e6F}).end(2e6), u"+2.00 M"_s);
        // The same numbers as a quantity of the text and as a signal of the heatmap.
        const SignalInfo nll{"nll", {"token", "step"}, "nats", "", ""};
        QCOMPARE(look(kind_of_signal(nll), {0, 3}).scale.high, 8.0);
        QCOMPARE(
            look(kind_of_signal({"gate", {"token", "step"}, "probability", "", ""}), {0, 0.1F}).scale.high,
            1.0);
        QVERIFY(look({rank, false, 0}, {1, 400}).scale.logarithmic);
        QCOMPARE(look({count, false, 3}, {0, 1}).scale.high, 3.0);
        QVERIFY(!look({category, false, 0}, {-1, 2}).diverging);
        // Ends that are held keep the white at 0.
        ValueLook held = look(gain, {-1, 1});
        held.hold(HeldRange({-1.0, 3.0}));
        QVERIFY(held.held);
        QCOMPARE(held.scale.position(0), 0.5);
        QCOMPARE(held.scale.high, 3.0);
        ValueLook one_way = look({plain, false, 0}, {0, 1});
        one_way.hold(HeldRange({1.0, 3.0}));
        QCOMPARE(one_way.scale.low, 1.0);
        // Nothing finite is no fault.
        QCOMPARE(look({plain, false, 0}, {std::numeric_limits<float>::quiet_NaN()}).scale.high, 1.0);
    }

    void numbersAreTypedWithACommaOrAPoint() {
        const QLocale before;
        for (const QLocale& locale : {QLocale(QLocale::German, QLocale::Germany), QLocale::c()}) {
            QLocale::setDefault(locale);
            const bool comma = locale.decimalPoint() == u","_s;
            QCOMPARE(typed_number(u"0.5"_s), 0.5);
            QCOMPARE(typed_number(u" −1.5e3 "_s), -1500.0);
            QCOMPARE(typed_number(u"0,5"_s), 0.5);
            QCOMPARE(typed_number(u"1,500"_s), comma ? std::optional(1.5) : std::nullopt);
            QVERIFY(!typed_number(u"nan"_s) && !typed_number(u"1.500,5"_s));
            QStringList ways{u"1.5"_s};
            if (comma) {
                ways << u"1,5"_s;
            }
            for (const QString& typed : ways) {
                NumberBox box;
                box.setRange(0, 1000);
                box.setDecimals(3);
                box.setSuffix(u" mm"_s);
                box.selectAll();
                QTest::keyClicks(&box, typed);
                QCOMPARE(box.value(), 1.5);
                QLineEdit line;
                line.setValidator(new NumberValidator(&line));
                QTest::keyClicks(&line, typed);
                QVERIFY(line.hasAcceptableInput());
                QCOMPARE(typed_number(line.text()), 1.5);
            }
            QLineEdit line;
            line.setValidator(new NumberValidator(&line));
            QTest::keyClicks(&line, u"x-2e-3z"_s);
            QCOMPARE(line.text(), u"-2e-3"_s);
        }
        QLocale::setDefault(before);
    }

    void smallTurnsOfTheWheelAddUp() {
        WheelNotches wheel;
        const auto turn = [&](int x, int y, Qt::ScrollPhase phase = Qt::NoScrollPhase) {
            const QWheelEvent event({}, {}, {}, QPoint(x, y), Qt::NoButton, Qt::ControlModifier, phase,
                                    false);
            return wheel.turn(event);
        };
        QCOMPARE(turn(0, 120), 1);
        QCOMPARE(turn(0, -240), -2);
        QCOMPARE(turn(120, 0), 0); // sideways
        QCOMPARE(turn(-120, 0), 0);
        QCOMPARE(turn(0, 0), 0); // the end of a gesture
        int notches = 0;
        for (int i = 0; i < 16; ++i) {
            notches += turn(0, 15);
        }
        QCOMPARE(notches, 2);
        QCOMPARE(turn(0, 100), 0);
        QCOMPARE(turn(0, -100), 0); // back again
        QCOMPARE(turn(0, -20), -1);
        QCOMPARE(turn(0, 110), 0);
        QCOMPARE(turn(0, 20, Qt::ScrollBegin), 0);
    }

    void niceCeilings() {
        QCOMPARE(nice_ceiling(7.3), 8.0);
        QCOMPARE(nice_ceiling(0.021), 0.03);
        QCOMPARE(nice_ceiling(10), 10.0);
        QCOMPARE(nice_ceiling(-1), 1.0);
        QCOMPARE(nice_ceiling(std::nan("")), 1.0);
    }

    void numbersAsPeopleReadThem() {
        QCOMPARE(format_nats(3.2141), u"3.21"_s);
        QCOMPARE(format_nats(std::nan("")), u"–"_s);
        QCOMPARE(format_nats(-0.001), u"0.00"_s);
        QCOMPARE(format_nats(-std::numeric_limits<double>::infinity()), u"−∞"_s);
        QCOMPARE(format_difference(0.214), u"+0.21"_s);
        QCOMPARE(format_difference(-0.03), u"−0.03"_s);
        QCOMPARE(format_probability(0.2149), u"0.21"_s);
        QCOMPARE(format_probability(0.0042), u"0.004"_s);
        QCOMPARE(format_probability(0.00001), u"<0.0001"_s);
        QCOMPARE(format_si(19'100'000), u"19.1 M"_s);
        QCOMPARE(format_si(999), u"999"_s);
        QCOMPARE(format_si(999'999), u"1.00 M"_s);
        QCOMPARE(format_count(1'204'000), u"1,204,000"_s);
        QCOMPARE(format_duration(7.2), u"0:07"_s);
        QCOMPARE(format_duration(3723), u"1:02:03"_s);
        QCOMPARE(format_duration(-1), u"–"_s);
        QCOMPARE(format_rate(41'200.4, u"tokens"_s), u"41,200 tokens/s"_s);
        QCOMPARE(format_bytes(14'300'000), u"14.3 MB"_s);
    }

    void bytesThatCannotBeSeenAreShown() {
        QCOMPARE(visible_text("a\nb\tc"), u"a⏎b⇥c"_s);
        QCOMPARE(visible_text("\xe2\x80"), u"‹E2 80›"_s);
        QCOMPARE(visible_text(std::string_view("\0x", 2)), u"‹00›x"_s);
        QCOMPARE(visible_text("\xe2\x80\xae!"), u"‹202E›!"_s);   // right-to-left override
        QCOMPARE(visible_text("\xed\xa0\x80"), u"‹ED A0 80›"_s); // a surrogate is no UTF-8
        QCOMPARE(visible_text("\xc0\xaf"), u"‹C0 AF›"_s);        // overlong
        QCOMPARE(visible_token(" the"), u"␣the"_s);
        QCOMPARE(visible_token("  "), u"␣␣"_s);
        QCOMPARE(visible_token("abcdefgh", 5), u"abcd…"_s);
        TokenColumns tokens;
        tokens.begin = {0, 2, 1, 9};
        tokens.end = {2, 5, 0, 12};
        QCOMPARE(token_bytes(tokens, "hello", 1), std::string_view("llo"));
        QVERIFY(token_bytes(tokens, "hello", 2).empty()); // ends before it begins
        QVERIFY(token_bytes(tokens, "hello", 3).empty()); // beyond the text
        QVERIFY(token_bytes(tokens, "hello", 7).empty());
    }

    void selectionSpeaksOfChangesOnly() {
        Selection selection;
        QSignalSpy token(&selection, &Selection::tokenChanged);
        QSignalSpy runs(&selection, &Selection::runsChanged);
        selection.setToken(5);
        selection.setToken(5);
        QCOMPARE(token.size(), 1);
        selection.setRunA({u"/a"_s, 1});
        selection.setRunA({u"/a"_s, 1});
        QCOMPARE(runs.size(), 1);
        selection.setHover(7);
        QCOMPARE(selection.shown(), 7);
        selection.setHover(-1);
        QCOMPARE(selection.shown(), 5);
        selection.setToken(-9);
        QCOMPARE(selection.token(), -1);
    }

    void aTokenOfAnotherSequenceMeansNothing() {
        Selection selection;
        selection.setToken(5);
        selection.setHover(6);
        qint64 during = 0;
        connect(&selection, &Selection::sequenceChanged, this, [&] { during = selection.shown(); });
        selection.setSequence(2);
        QCOMPARE(during, -1);
        QCOMPARE(selection.token(), -1);
        QCOMPARE(selection.hover(), -1);
    }

    void valuesStandAtThePredictedToken() {
        Selection selection;
        QCOMPARE(selection.rowOf(5), 4);
        QCOMPARE(selection.rowOf(0), -1);
        QCOMPARE(selection.tokenOf(4), 5);
        selection.setAttribution(Attribution::predicting);
        QCOMPARE(selection.rowOf(5), 5);
    }

    void aRunKeepsItsColour() {
        Theme theme(Appearance::light);
        Selection selection;
        const RunKey first{u"/t"_s, 1};
        const RunKey second{u"/t"_s, 2};
        const RunKey third{u"/t"_s, 3};
        selection.setRunA(first);
        selection.setRunB(second);
        QCOMPARE(theme.runColour(first, selection), theme.colours().a);
        QCOMPARE(theme.runColour(second, selection), theme.colours().b);
        const QColor own = theme.runColour(third, selection);
        QVERIFY(own != theme.colours().a && own != theme.colours().b);
        selection.setRunA(third);
        QCOMPARE(theme.runColour(third, selection), theme.colours().a);
        selection.setRunA(first);
        QCOMPARE(theme.runColour(third, selection), own);
    }

    void theWheelPassesFieldsWithoutFocus() {
        const Theme theme(Appearance::light);
        Style style(theme);
        QComboBox box;
        box.addItems({u"one"_s, u"two"_s});
        QSpinBox number;
        number.setValue(5);
        const auto turn = [](QWidget& field) { return testing::turn_wheel(&field, {4, 4}, {0, -120}); };
        for (QWidget* field : {static_cast<QWidget*>(&box), static_cast<QWidget*>(&number)}) {
            field->setStyle(&style);
            field->ensurePolished();
            QVERIFY(!turn(*field)); // what the field stands in scrolls
        }
        QCOMPARE(box.currentIndex(), 0);
        QCOMPARE(number.value(), 5);
        box.show();
        box.activateWindow();
        box.setFocus();
        QTRY_VERIFY_WITH_TIMEOUT(box.hasFocus(), 60'000);
        QVERIFY(turn(box));
        QCOMPARE(box.currentIndex(), 1);
    }

    void whatTheKeyboardReachesHasARing_data() {
        QTest::addColumn<bool>("tab");
        QTest::newRow("tab") << true;
        QTest::newRow("menu button") << false;
    }
    void whatTheKeyboardReachesHasARing() {
        QFETCH(bool, tab);
        const Theme theme(Appearance::light);
        Style style(theme);
        QTabBar tabs;
        tabs.addTab(u"Compare"_s);
        QToolButton button;
        QMenu menu;
        button.setText(u"Panels"_s);
        button.setMenu(&menu);
        button.setPopupMode(QToolButton::InstantPopup);
        QWidget& reached = tab ? static_cast<QWidget&>(tabs) : button;
        reached.setStyle(&style);
        reached.show();
        reached.activateWindow();
        reached.setFocus(Qt::TabFocusReason);
        QTRY_VERIFY_WITH_TIMEOUT(reached.hasFocus(), 60'000);
        reached.setAttribute(Qt::WA_KeyboardFocusChange, false);
        const QImage by_mouse = reached.grab().toImage();
        reached.setAttribute(Qt::WA_KeyboardFocusChange);
        QVERIFY(reached.grab().toImage() != by_mouse);
    }

    void workThatWasOvertakenIsNotWaitedFor() {
        QObject owner;
        auto task = std::make_unique<Task>(&owner);
        std::promise<void> release;
        const std::shared_future<void> released = release.get_future().share();
        auto running = std::make_shared<std::atomic<int>>(0);
        auto most = std::make_shared<std::atomic<int>>(0);
        QList<int> done;
        const auto start = [&](int number) {
            task->start(
                [released, running, most, number](const std::stop_token&) {
                    *most = std::max(most->load(), ++*running);
                    released.wait(); // deaf to being stopped
                    --*running;
                    return number;
                },
                [&done](int result) { done << result; }, [](const QString&) {});
        };
        start(1);
        QTRY_VERIFY(running->load() == 1);
        start(2); // returns although the first one goes on
        start(3);
        QVERIFY(task->isBusy());
        release.set_value();
        QTRY_COMPARE(done, QList<int>{3});
        QVERIFY(!task->isBusy());
        QCOMPARE(most->load(), 1); // never two at once
        // Cancelled, and gone while its work goes on: nothing comes.
        std::promise<void> later;
        const std::shared_future<void> ended = later.get_future().share();
        bool came = false;
        auto begun = std::make_shared<std::atomic<bool>>(false);
        auto over = std::make_shared<std::atomic<bool>>(false);
        task->start(
            [ended, begun, over](const std::stop_token&, const Task::Tell& tell) {
                *begun = true;
                ended.wait();
                tell([] {});
                *over = true;
                return 0;
            },
            [&came](int) { came = true; }, [&came](const QString&) { came = true; });
        QTRY_VERIFY(begun->load());
        task.reset();
        later.set_value();
        QTRY_VERIFY(over->load());
        QCoreApplication::processEvents();
        QVERIFY(!came);
    }

    void faultsOfWorkAreSaid() {
        QObject owner;
        Task task(&owner);
        QStringList heard;
        const auto fail = [&](auto fault) {
            task.start([fault](const std::stop_token&) -> int { throw fault; }, [](int) {},
                       [&heard](const QString& sentence) { heard << sentence; });
            QTRY_VERIFY(!task.isBusy());
        };
        fail(std::runtime_error("a reason"));
        QCOMPARE(heard, QStringList{u"a reason"_s});
        fail(std::bad_alloc());
        QCOMPARE(heard.size(), 2);
        // What it tells on the way comes before its result.
        QList<int> order;
        task.start(
            [&order](const std::stop_token&, const Task::Tell& tell) {
                tell([&order] { order << 1; });
                tell([&order] { order << 2; });
                return 3;
            },
            [&order](int last) { order << last; }, [](const QString&) {});
        QTRY_COMPARE(order, (QList<int>{1, 2, 3}));
    }

    void aListIsFilledWithoutBeingMoved() {
        QComboBox box;
        QSignalSpy chosen(&box, &QComboBox::currentIndexChanged);
        fill_chooser(box, {{u"a"_s, 1}, {u"b"_s, 2}, {u"c"_s, 3}}, 2);
        QCOMPARE(box.count(), 3);
        QCOMPARE(box.currentData().toInt(), 2);
        QPersistentModelIndex marked = box.model()->index(2, 0);
        QSignalSpy rows(box.model(), &QAbstractItemModel::dataChanged);
        fill_chooser(box, {{u"a"_s, 1}, {u"b"_s, 2}, {u"c"_s, 3}}, 2);
        QCOMPARE(rows.size(), 0); // nothing differs, nothing is touched
        fill_chooser(box, {{u"new"_s, 9}, {u"a2"_s, 1}, {u"c"_s, 3}}, 1);
        QCOMPARE(box.count(), 3);
        QCOMPARE(box.itemText(0), u"new"_s);
        QCOMPARE(box.itemText(1), u"a2"_s);
        QVERIFY(marked.isValid() && marked.data(Qt::UserRole).toInt() == 3);
        QCOMPARE(box.currentData().toInt(), 1);
        fill_chooser(box, {{u"c"_s, 3}, {u"a2"_s, 1}},
                     7); // turned round; none of them
        QCOMPARE(box.count(), 2);
        QCOMPARE(box.itemData(0).toInt(), 3);
        QCOMPARE(box.itemData(1).toInt(), 1);
        QCOMPARE(box.currentIndex(), -1);
        fill_chooser(box, {}, {});
        QCOMPARE(box.count(), 0);
        QCOMPARE(chosen.size(), 0);
    }

    void themesAnnounceThemselves() {
        Theme theme(Appearance::system, true);
        QVERIFY(theme.dark());
        QSignalSpy changed(&theme, &Theme::changed);
        theme.setAppearance(Appearance::light);
        QVERIFY(!theme.dark());
        theme.setTextSize(1000);
        QCOMPARE(theme.textSize(), 48);
        QCOMPARE(changed.size(), 2);
    }
};

QTEST_MAIN(ViewsCommonTest)
#include "views_common_test.moc"

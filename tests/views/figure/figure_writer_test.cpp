// SPDX-License-Identifier: GPL-3.0-or-later
// The figure writer alone: one display list through all back ends.
#include "tests/views/figure/figure_stage.h"
#include "views/common/format.h"
#include "views/figure/writer/backends.h"

#include <QFile>
#include <QFontDatabase>
#include <QRawFont>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QtTest>

#include <zlib.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;

namespace {

DisplayList sample() {
    DisplayList list(QSizeF(84 * points_per_mm, 100));
    list.rect({10, 10, 50, 20}, QColor(255, 0, 0));
    list.rect({70, 10, 50, 20}, QColor(0, 0, 255, 128), {Qt::black, 1, {3, 2}, false}, 4);
    list.circle({150, 20}, 8, QColor(0, 128, 0));
    list.line({10, 40}, {200, 40}, {Qt::black, 0.5, {}, false});
    list.text(u"NLL (nats) µ → “seventeen”"_s, {10, 60}, {8, false, Qt::black});
    list.text(u"Fett"_s, {120, 60}, {8, true, Qt::black}, Align::center);
    list.text(u"step"_s, {220, 80}, {8, false, Qt::black}, Align::right, 90);
    QImage image(2, 1, QImage::Format_RGB32);
    image.setPixel(0, 0, qRgb(10, 200, 30));
    image.setPixel(1, 0, qRgb(200, 10, 30));
    list.image({10, 70, 40, 20}, image);
    list.beginClip({60, 70, 20, 20});
    list.rect({50, 60, 100, 100}, QColor(255, 200, 0));
    list.endClip();
    return list;
}

/// All streams of a PDF, inflated; images and fonts included.
QByteArray inflated(const QByteArray& pdf) {
    QByteArray all;
    qsizetype at = 0;
    while ((at = pdf.indexOf("\nstream\n", at)) >= 0) {
        at += 8;
        const qsizetype end = pdf.indexOf("\nendstream", at);
        QByteArray out(8 << 20, '\0');
        uLongf size = static_cast<uLongf>(out.size());
        if (uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(pdf.constData() + at),
                       static_cast<uLong>(end - at)) == Z_OK) {
            all += out.left(static_cast<qsizetype>(size)) + "\n";
        }
        at = end;
    }
    return all;
}

/// The bytes as a file; its name.
QString written(const QTemporaryDir& folder, const QByteArray& bytes) {
    QFile file(folder.filePath(u"figure.pdf"_s));
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size()) {
        qFatal("cannot write %s", qPrintable(file.fileName()));
    }
    return file.fileName();
}

/// What Poppler paints of the page at 144 dots per inch.
QImage painted(const QTemporaryDir& folder, const QString& pdf) {
    const QString out = folder.filePath(u"out"_s);
    output_of(u"pdftoppm"_s, {u"-r"_s, u"144"_s, u"-png"_s, u"-singlefile"_s, pdf, out});
    return QImage(out + u".png"_s);
}

} // namespace

class FigureWriterTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void theSameListGivesTheSameBytes() {
        const Fonts again = Fonts::load();
        QCOMPARE(to_pdf(sample(), fonts_), to_pdf(sample(), again));
        QCOMPARE(to_svg(sample(), fonts_), to_svg(sample(), again));
        QCOMPARE(to_png(sample(), fonts_, 300), to_png(sample(), again, 300));
    }

    void anotherFamilyIsMeasuredAndEmbedded() {
        const QString family = u"DejaVu Serif"_s;
        if (!Fonts::families().contains(family)) {
            QSKIP("DejaVu Serif is not installed");
        }
        const Fonts serif = Fonts::load(family);
        const TextStyle style;
        QVERIFY(serif.width(u"mean steps"_s, style) != fonts_.width(u"mean steps"_s, style));
        const QByteArray pdf = to_pdf(sample(), serif);
        QVERIFY(pdf.contains("+DejaVuSerif ") || pdf.contains("+DejaVuSerif\n") ||
                pdf.contains("+DejaVuSerif/"));
        QVERIFY(pdf.contains("+DejaVuSerif-Bold"));
        QVERIFY(!pdf.contains("DejaVuSans"));
        QCOMPARE(pdf, to_pdf(sample(), Fonts::load(family)));
        const QByteArray svg = to_svg(sample(), serif);
        QVERIFY(svg.contains("font-family:'DejaVu Serif'") && !svg.contains("DejaVu Sans"));
    }

    void aFamilyThatIsNotThereIsSaid() {
        try {
            (void)Fonts::load(u"No Such Typeface"_s);
            QFAIL("it was found");
        } catch (const ponderscope::EnvironmentError& error) {
            const QString sentence = QString::fromUtf8(error.what());
            QVERIFY2(sentence.contains(u"No Such Typeface"_s) && sentence.contains(u"DejaVu Sans"_s),
                     error.what());
        }
    }

    void pdfHasTheListsSizeNoDatesAndItsObjects() {
        const QByteArray pdf = to_pdf(sample(), fonts_);
        QVERIFY(pdf.startsWith("%PDF-1.7"));
        QVERIFY2(pdf.contains("/MediaBox [0 0 238.11 100]"), pdf.left(2000));
        QVERIFY(!pdf.contains("CreationDate") && !pdf.contains("ModDate"));
        const qsizetype start = pdf.lastIndexOf("startxref\n") + 10;
        const qsizetype xref = pdf.mid(start, pdf.indexOf('\n', start) - start).toLongLong();
        QVERIFY(pdf.mid(xref).startsWith("xref\n0 "));
        const QList<QByteArray> lines = pdf.mid(xref).split('\n');
        const int count = lines[1].split(' ')[1].toInt();
        QVERIFY(count > 5);
        for (int i = 1; i < count; ++i) {
            const qsizetype offset = lines[2 + i].left(10).toLongLong();
            QVERIFY2(pdf.mid(offset).startsWith(QByteArray::number(i) + " 0 obj"), QByteArray::number(i));
        }
    }

    void pdfDrawsVectorsAndSetsText() {
        const QByteArray content = inflated(to_pdf(sample(), fonts_));
        QVERIFY(content.contains("10 10 50 20 re\nf"));
        QVERIFY(content.contains("60 70 20 20 re W n"));
        QVERIFY(content.contains(" Tj ET"));
        QVERIFY(content.contains("beginbfchar"));
        QVERIFY(content.contains("<201C>")); // the quotation mark, in ToUnicode
        QVERIFY(to_pdf(sample(), fonts_).contains("/Interpolate false"));
    }

    void popplerAgrees() {
        if (QStandardPaths::findExecutable(u"pdffonts"_s).isEmpty()) {
            QSKIP("poppler-utils are not installed");
        }
        QTemporaryDir folder;
        const QString path = written(folder, to_pdf(sample(), fonts_));
        const QStringList fonts = output_of(u"pdffonts"_s, {path}).split(u'\n', Qt::SkipEmptyParts).mid(2);
        QCOMPARE(fonts.size(), 2);
        for (const QString& line : fonts) {
            QVERIFY2(line.contains(QRegularExpression(
                         u"^[A-Z]{6}\\+DejaVuSans.*CID TrueType +Identity-H +yes yes yes"_s)),
                     qPrintable(line));
        }
        const QString text = output_of(u"pdftotext"_s, {path, u"-"_s});
        QVERIFY2(text.contains(u"NLL (nats) µ → “seventeen”"_s), qPrintable(text));
        QVERIFY(text.contains(u"Fett"_s));
    }

    void popplerPaintsWhatThePngShows() {
        if (QStandardPaths::findExecutable(u"pdftoppm"_s).isEmpty()) {
            QSKIP("poppler-utils are not installed");
        }
        QTemporaryDir folder;
        const QString path = written(folder, to_pdf(sample(), fonts_));
        const QImage theirs = painted(folder, path);
        const QImage ours = to_image(sample(), fonts_, 144);
        QVERIFY(!theirs.isNull());
        // Points well inside areas: red, blue over white, green, both pixels of the image, the clipped square
        // and what it is cut from.
        for (const QPointF point : {QPointF(20, 20), QPointF(90, 20), QPointF(150, 20), QPointF(20, 80),
                                    QPointF(40, 80), QPointF(70, 80), QPointF(100, 85), QPointF(230, 95)}) {
            const QColor a = ours.pixelColor((point * 2).toPoint());
            const QColor b = theirs.pixelColor((point * 2).toPoint());
            QVERIFY2(qAbs(a.red() - b.red()) < 6 && qAbs(a.green() - b.green()) < 6 &&
                         qAbs(a.blue() - b.blue()) < 6,
                     qPrintable(u"%1,%2: %3 %4"_s.arg(point.x()).arg(point.y()).arg(a.name(), b.name())));
        }
    }

    void svgIsWellFormedAndKeepsTextAndClips() {
        const QByteArray svg = to_svg(sample(), fonts_);
        QXmlStreamReader xml(svg);
        int texts = 0;
        int clips = 0;
        int clipped = 0;
        QString words;
        while (!xml.atEnd()) {
            if (xml.readNext() != QXmlStreamReader::StartElement) {
                continue;
            }
            if (xml.name() == u"svg") {
                QCOMPARE(xml.attributes().value(QLatin1String("width")).toString(), u"84mm"_s);
                QCOMPARE(xml.attributes().value(QLatin1String("viewBox")).toString(), u"0 0 238.11 100"_s);
            } else if (xml.name() == u"clipPath") {
                ++clips;
            } else if (xml.attributes().hasAttribute(u"clip-path"_s)) {
                ++clipped;
            } else if (xml.name() == u"text") {
                ++texts;
                QVERIFY(xml.attributes().value(QLatin1String("textLength")).toDouble() > 0);
                words += xml.readElementText() + u'|';
            }
        }
        QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
        QCOMPARE(texts, 3);
        QCOMPARE(clips, 1);
        QCOMPARE(clipped, 1);
        QVERIFY(words.contains(u"“seventeen”"_s));
        QCOMPARE(svg.count("@font-face"), 2);
    }

    void svgReplacesWhatXmlForbids() {
        DisplayList list(QSizeF(100, 20));
        list.text(u"a\x01<b>&\"c"_s, {0, 10}, {});
        QXmlStreamReader xml(to_svg(list, fonts_));
        while (!xml.atEnd()) {
            xml.readNext();
        }
        QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
    }

    void pngHasItsResolution() {
        QByteArray png = to_png(sample(), fonts_, 300);
        const QImage image = QImage::fromData(png, "png");
        QCOMPARE(image.width(), 992); // 84 mm at 300 dpi
        QCOMPARE(image.dotsPerMeterX(), 11811);
        QVERIFY(!png.contains("tIME"));
        QVERIFY(image.text().isEmpty());
    }

    void embeddedFontIsAFontThatOthersRead() {
        const QString letters = u"aé→ÅǺ"_s;
        const FontFace* face = fonts_.shape(letters, false).clusters.front().face;
        std::set<char32_t> characters;
        for (const char32_t character : letters.toUcs4()) {
            characters.insert(character);
        }
        const QByteArray subset = face->subset(characters);
        const QRawFont raw(subset, 100);
        QVERIFY(raw.isValid());
        const QRawFont whole = QRawFont::fromFont(QFontDatabase::font(u"DejaVu Sans"_s, u"Book"_s, 12));
        for (const QChar letter : letters) {
            const QString text(letter);
            const quint32 number = raw.glyphIndexesForString(text).value(0);
            QVERIFY2(number != 0, qPrintable(text));
            // Composite glyphs kept their parts: the outline is that of the whole font.
            const QRectF ours = raw.pathForGlyph(number).boundingRect();
            QRawFont same = whole;
            same.setPixelSize(100);
            const QRectF theirs = same.pathForGlyph(same.glyphIndexesForString(text).value(0)).boundingRect();
            QVERIFY2(qAbs(ours.width() - theirs.width()) < 2 && qAbs(ours.height() - theirs.height()) < 2,
                     qPrintable(text));
            const QRectF em = face->outline(face->glyph_of(letter.unicode())).boundingRect();
            QVERIFY(qAbs(em.width() * 100 - theirs.width()) < 2);
        }
        QVERIFY(subset.size() < 60'000); // of 757,076
    }

    void otherScriptsAreShaped() {
        // Kerning: closer than each on its own.
        const TextStyle style{1, false, Qt::black};
        const auto wide = [&](const char16_t* text) { return fonts_.width(QString::fromUtf16(text), style); };
        QVERIFY(wide(u"AV") < wide(u"A") + wide(u"V"));
        QCOMPARE(wide(u"fi"), wide(u"f") + wide(u"i")); // no ligature
        // Arabic joins, and reads from the right.
        const ShapedText arabic = fonts_.shape(u"باب"_s, false);
        QVERIFY(arabic.right_to_left);
        QCOMPARE(arabic.clusters.size(), std::size_t{3});
        QCOMPARE(arabic.clusters.front().from, 2);                   // the last letter stands at the left
        QVERIFY(arabic.glyphs[0].number != arabic.glyphs[2].number); // another form of the same letter
        const auto [left, right] = arabic.extent(0, 1);
        QVERIFY(left > arabic.width / 2 && qAbs(right - arabic.width) < 1e-9);
        // Half a letter is half as wide, at the side where it is read first.
        const auto half = arabic.extent(0, 0.5);
        QVERIFY(qAbs((half.second - half.first) - (right - left) / 2) < 1e-9 && half.second == right);
        // Both ways in one line: numbers keep their order.
        const ShapedText mixed = fonts_.shape(u"abc שלום 12 def"_s, false);
        QVERIFY(!mixed.right_to_left);
        std::vector<qsizetype> order;
        for (const ShapedCluster& cluster : mixed.clusters) {
            order.push_back(cluster.from);
        }
        QCOMPARE(order, (std::vector<qsizetype>{0, 1, 2, 3, 9, 10, 8, 7, 6, 5, 4, 11, 12, 13, 14}));
        for (const QString& text : {QString(), u"\u200d"_s, QString(QChar(0xd800)), // odd, no disaster
                                    u"\u0301"_s, u"\u202e x"_s}) {
            const ShapedText odd = fonts_.shape(text, true);
            QVERIFY(std::isfinite(odd.width));
        }
    }

    void levelsAreReorderedAsUnicodeSays() {
        using Order = std::vector<std::size_t>;
        QCOMPARE(visual_order({}), Order{});
        QCOMPARE(visual_order({0, 1, 1, 0}), (Order{0, 2, 1, 3}));
        QCOMPARE(visual_order({1, 2, 2, 1}), (Order{3, 1, 2, 0}));
        QVERIFY(may_part(u"ab"_s, 1) && may_part(u"漢字"_s, 1));
        QVERIFY(!may_part(u"با"_s, 1) && !may_part(u"e\u0301"_s, 1));
        QVERIFY(!may_part(u"कि"_s, 1));
    }

    /// Each script in a PDF comes out as it went in.
    void textCopiesOut_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("latin") << u"AVATAR To fi „Straße“ naïve"_s;
        QTest::newRow("combining") << u"nai\u0308ve naïve x\u0302 end"_s;
        QTest::newRow("greek, cyrillic") << u"Ωμέγα Привет"_s;
        QTest::newRow("hebrew") << u"שלום עולם"_s;
        QTest::newRow("arabic") << u"كان حارس المنارة"_s;
        QTest::newRow("chinese") << u"灯塔看守人，你好"_s;
        QTest::newRow("japanese") << u"日本語のテキスト"_s;
        QTest::newRow("korean") << u"안녕하세요"_s;
        QTest::newRow("devanagari") << u"प्रकाशस्तंभ क्षितिज हिन्दी"_s;
        QTest::newRow("thai") << u"คนเฝ้าประภาคาร"_s;
        QTest::newRow("emoji") << u"before 😀 after"_s;
    }
    void textCopiesOut() {
        QFETCH(QString, text);
        if (QStandardPaths::findExecutable(u"pdftotext"_s).isEmpty()) {
            QSKIP("poppler-utils are not installed");
        }
        DisplayList list(QSizeF(300, 40));
        list.text(text, {10, 20}, {8, false, Qt::black});
        if (!missing_characters(list, fonts_).empty()) {
            QSKIP("no font of this machine has these letters (fonts-noto-core, fonts-noto-cjk)");
        }
        const QByteArray pdf = to_pdf(list, fonts_);
        QCOMPARE(pdf, to_pdf(list, Fonts::load()));
        QCOMPARE(to_svg(list, fonts_), to_svg(list, Fonts::load()));
        QTemporaryDir folder;
        const QString path = written(folder, pdf);
        QString copied = output_of(u"pdftotext"_s, {path, u"-"_s});
        copied.remove(QRegularExpression(u"[\\x{202a}-\\x{202e}\\x{200e}\\x{200f}\\f]"_s));
        QCOMPARE(copied.trimmed(), text);
        // What Poppler paints is what we paint, letter for letter.
        const QImage theirs = painted(folder, path);
        const QImage ours = to_image(list, fonts_, 144);
        QCOMPARE(theirs.size(), ours.size());
        double apart = 0;
        double ink = 0;
        for (int y = 0; y < ours.height(); ++y) {
            for (int x = 0; x < ours.width(); ++x) {
                apart += qAbs(qGray(ours.pixel(x, y)) - qGray(theirs.pixel(x, y)));
                ink += 255 - qGray(ours.pixel(x, y));
            }
        }
        QVERIFY(ink > 0);
        QVERIFY2(apart < 0.35 * ink, qPrintable(QString::number(apart / ink)));
    }

    void fontsThatAreDamagedAreSaid() {
        const FontFace* face = fonts_.shape(u"a"_s, false).clusters.front().face;
        QTemporaryDir folder;
        const QString path = folder.filePath(u"font.ttf"_s);
        const QByteArray whole = face->subset(std::set<char32_t>{U'a', U'b'});
        const auto problem = [&](const QByteArray& bytes) -> QString {
            QFile file(path);
            if (!file.open(QIODevice::WriteOnly)) {
                return u"not written"_s;
            }
            file.write(bytes);
            file.close();
            try {
                const FontFace read(path.toStdString(), 0, u"Mine"_s);
                (void)read.outline(read.glyph_of(U'a'));
                (void)read.subset(std::set<std::uint32_t>{read.glyph_of(U'a'), 60'000});
                return {};
            } catch (const ponderscope::EnvironmentError& error) {
                return QString::fromUtf8(error.what());
            }
        };
        QCOMPARE(problem(whole), QString());
        QVERIFY(problem({}).contains(u"\"Mine\""_s));
        QVERIFY(problem("no font at all").contains(u"\"Mine\""_s));
        QByteArray restricted = whole;
        restricted[restricted.indexOf("glyf")] = 'x';
        QVERIFY(problem(restricted).contains(u"\"Mine\""_s));
        for (qsizetype size = 0; size < whole.size();
             size += 97) { // cut anywhere: a sentence, or a letter less
            (void)problem(whole.left(size));
        }
        for (qsizetype at = 0; at < whole.size(); at += 13) {
            QByteArray bent = whole;
            bent[at] = static_cast<char>(~bent[at]);
            (void)problem(bent);
        }
    }

    void widthsAreTheFontsOwn() {
        // Advance widths of DejaVu Sans 2.37 in 1/2048 em.
        QCOMPARE(fonts_.width(u"A"_s, {2048, false, Qt::black}), 1401.0);
        QCOMPARE(fonts_.width(u"0123456789"_s, {2048, false, Qt::black}), 13030.0);
        QCOMPARE(fonts_.width(QString(), {8, false, Qt::black}), 0.0);
    }

    void elidingFitsTheWidth() {
        const TextStyle style{8, false, Qt::black};
        const QString cut = fonts_.elided(u"a rather long name of a run"_s, style, 50);
        QVERIFY(cut.endsWith(u"…"_s));
        QVERIFY(fonts_.width(cut, style) <= 50);
        QCOMPARE(fonts_.elided(u"ab"_s, style, 50), u"ab"_s);
    }

    void missingLettersAreNamed() {
        DisplayList list(QSizeF(100, 20));
        list.text(u"\uE123a"_s, {0, 10}, {}); // private use: nobody's letter
        const auto missing = missing_characters(list, fonts_);
        QCOMPARE(missing.size(), std::size_t{1});
        QCOMPARE(missing[0], U'\uE123');
        QVERIFY(to_pdf(list, fonts_).startsWith("%PDF")); // and do not stop the figure
    }

    void numbers_data() {
        QTest::addColumn<double>("value");
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("zero") << 0.0 << QByteArray("0");
        QTest::newRow("minus zero") << -0.0001 << QByteArray("0");
        QTest::newRow("trailing zeros") << 2.5 << QByteArray("2.5");
        QTest::newRow("rounded") << 1.23456 << QByteArray("1.235");
        QTest::newRow("whole") << 100.0 << QByteArray("100");
    }
    void numbers() {
        QFETCH(double, value);
        QFETCH(QByteArray, text);
        QCOMPARE(number(value), text);
    }

    void csvReadsBack() {
        for (const float value : {0.1F, 1.0F / 3, 1e-20F, 123456.7F, -2.5F}) {
            QCOMPARE(QString::fromStdString(csv_number(value)).toFloat(), value);
        }
        QCOMPARE(csv_number(std::numeric_limits<float>::quiet_NaN()), std::string());
        QCOMPARE(csv_field("a,\"b\"\n"), std::string("\"a,\"\"b\"\"\n\""));
        QCOMPARE(csv_bytes(std::string("\xff", 1)), std::string("‹FF›"));
    }

private:
    const Fonts fonts_ = Fonts::load();
};

QTEST_MAIN(FigureWriterTest)
#include "figure_writer_test.moc"

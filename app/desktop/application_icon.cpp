// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/application_icon.h"

#include <QFile>
#include <QPainter>
#include <QXmlStreamReader>

#include <cmath>

/// Outside of the namespace, as Qt asks; the resources lie in a static library.
static void load_resources() {
    Q_INIT_RESOURCE(icons);
}

namespace ponderscope {

QPixmap application_picture(int pixels) {
    load_resources();
    QPixmap picture(pixels, pixels);
    picture.fill(Qt::transparent);
    QFile file(QStringLiteral(":/icons/ponderscope.svg"));
    if (!file.open(QIODevice::ReadOnly)) {
        return picture;
    }
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    double scale = 1;
    QXmlStreamReader xml(&file);
    while (!xml.atEnd()) {
        if (xml.readNext() != QXmlStreamReader::StartElement) {
            continue;
        }
        const QXmlStreamAttributes attributes = xml.attributes();
        const auto number = [&attributes](const char* name) {
            return attributes.value(QLatin1String(name)).toDouble();
        };
        if (xml.name() == QLatin1String("svg")) {
            const QStringList box = attributes.value(QLatin1String("viewBox")).toString().split(u' ');
            scale = pixels / std::max(1.0, box.value(2).toDouble());
        } else if (xml.name() == QLatin1String("rect")) {
            const double left = std::round(number("x") * scale);
            const double top = std::round(number("y") * scale);
            const double right = std::round((number("x") + number("width")) * scale);
            const double bottom = std::round((number("y") + number("height")) * scale);
            painter.setBrush(QColor(attributes.value(QLatin1String("fill")).toString()));
            painter.drawRoundedRect(QRectF(left, top, right - left, bottom - top), number("rx") * scale,
                                    number("rx") * scale);
        }
    }
    return picture;
}

QIcon application_icon() {
    QIcon icon;
    for (const int pixels : {16, 22, 24, 32, 48, 64, 128, 256}) {
        icon.addPixmap(application_picture(pixels));
    }
    return icon;
}

} // namespace ponderscope

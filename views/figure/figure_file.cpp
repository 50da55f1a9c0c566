// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_file.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "views/common/controls.h"
#include "views/common/paths.h"
#include "views/figure/command.h"

#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QStandardPaths>

using namespace Qt::StringLiterals;

namespace ponderscope {

using namespace figure;

namespace {

/// The default folder for figures: the trace's own; for a trace on another machine, the user's documents.
QString folder_beside(const QString& trace) {
    if (!is_elsewhere(trace)) {
        return QFileInfo(trace).absolutePath();
    }
    const QString documents = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    return QFileInfo(documents).isDir() ? documents : QDir::homePath();
}

QString free_name(const QString& file) {
    const QFileInfo info(file);
    QString name = file;
    for (int number = 2; QFileInfo::exists(name); ++number) {
        name = u"%1/%2-%3.%4"_s.arg(info.path(), info.completeBaseName(), QString::number(number),
                                    info.suffix());
    }
    return name;
}

std::string written_beside(const FigureSpec& spec, const QString& file) {
    return write_figure_spec(spec, std::filesystem::absolute(path_of(file)).parent_path());
}

} // namespace

FigureFile::FigureFile(QWidget* parent)
    : QWidget(parent), file_(new QLineEdit(this)), format_(new QComboBox(this)) {
    const std::pair<QString, const char*> formats[] = {
        {u"PDF"_s, "pdf"}, {u"SVG"_s, "svg"}, {u"PNG"_s, "png"}, {u"LaTeX"_s, "tex"}};
    for (const auto& [text, name] : formats) {
        format_->addItem(text, QString::fromLatin1(name));
    }
    format_->setAccessibleName(u"Format"_s);
    file_->setAccessibleName(u"File"_s);
    auto* browse = new QPushButton(u"Choose…"_s, this);
    make_row(this, {}, -1, {{file_, 1}, format_, browse});
    connect(browse, &QPushButton::clicked, this, &FigureFile::choose);
    connect(file_, &QLineEdit::editingFinished, this, &FigureFile::changed);
    connect(format_, &QComboBox::activated, this, [this] {
        const QFileInfo info(file());
        setFile(info.path() + u'/' + info.completeBaseName() + u'.' + format_->currentData().toString());
    });
}

QString FigureFile::file() const {
    return file_->text();
}

void FigureFile::setFile(const QString& file) {
    file_->setText(file);
    if (const int format = format_->findData(QFileInfo(file).suffix().toLower()); format >= 0) {
        format_->setCurrentIndex(format);
    }
    Q_EMIT changed();
}

void FigureFile::setFreeName(const QString& kind, const QString& trace) {
    const QString folder = trace.isEmpty() ? QFileInfo(file()).path() : folder_beside(trace);
    setFile(free_name(folder + u'/' + kind + u'.' + format_->currentData().toString()));
}

void FigureFile::choose() {
    auto* dialog = new QFileDialog(this, u"Save Figure"_s, {},
                                   u"PDF (*.pdf);;SVG (*.svg);;PNG (*.png);;LaTeX (*.tex)"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(file());
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        setFile(QFileInfo(file).suffix().isEmpty() ? file + u'.' + format_->currentData().toString() : file);
    });
    dialog->open();
}

QStringList FigureFile::inTheWay(const FigureSpec& spec) const {
    const QFileInfo info(file());
    const QString beside = info.path() + u'/' + info.completeBaseName() + u".json"_s;
    QFile known(beside);
    const bool same = known.open(QIODevice::ReadOnly) &&
                      known.readAll() == QByteArray::fromStdString(written_beside(spec, file()));
    QStringList others;
    for (const QString& name : {file(), beside}) {
        if (!same && QFileInfo::exists(name)) {
            others << QFileInfo(name).fileName();
        }
    }
    return others;
}

QStringList FigureFile::write(const FigureSpec& spec, const Figure& made, const Fonts& fonts) {
    if (const QStringList others = inTheWay(spec); !others.isEmpty()) {
        const QString free = free_name(file());
        QMessageBox box(QMessageBox::Question, u"File Exists"_s,
                        u"%1 exists and belongs to another figure."_s.arg(others.join(u" and "_s)),
                        QMessageBox::Cancel, this);
        QPushButton* both =
            box.addButton(u"Write %1"_s.arg(QFileInfo(free).fileName()), QMessageBox::AcceptRole);
        QPushButton* replace = box.addButton(u"Replace"_s, QMessageBox::DestructiveRole);
        box.setDefaultButton(both);
        box.exec();
        if (box.clickedButton() != both && box.clickedButton() != replace) {
            return {};
        }
        if (box.clickedButton() == both) {
            setFile(free);
        }
    }
    const std::filesystem::path path = path_of(file());
    auto written = write_figure(made, fonts, path, spec.dpi);
    std::filesystem::path beside = path;
    beside.replace_extension(".json");
    write_file_atomically(beside, written_beside(spec, file()));
    written.push_back(beside);
    QStringList names;
    for (const std::filesystem::path& one : written) {
        names.append(path_text(one));
    }
    return names;
}

} // namespace ponderscope

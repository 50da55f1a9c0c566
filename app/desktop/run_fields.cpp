// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/run_fields.h"

#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"
#include "views/common/format.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QRegularExpressionValidator>
#include <QSpinBox>
#include <QToolButton>
#include <QWidget>

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// The words for the value \p kv of --kv: what later tokens see. The option's own word follows in
/// parentheses, so that both can be learnt here.
QString words_of_kv(const QString& kv) {
    if (kv == QLatin1String("full")) {
        return u"every step of it (full)"_s;
    }
    if (kv == QLatin1String("per_step")) {
        return u"its last step so far (per_step)"_s;
    }
    if (kv == QLatin1String("shared")) {
        return u"its last step, always (shared)"_s;
    }
    return u"the steps that it ran (skip)"_s;
}

QString kv_meaning(const QString& kv) {
    if (kv == QLatin1String("full")) {
        return u"Every step runs for every token; an exit only chooses the read-out"_s;
    }
    if (kv == QLatin1String("per_step")) {
        return u"At each step, its last step up to that one"_s;
    }
    if (kv == QLatin1String("shared")) {
        return u"Its last step at every step; runs token by token"_s;
    }
    return u"Later tokens attend to step k of this token only if step k ran."_s;
}

} // namespace

RunFields::RunFields(QWidget* parent)
    : QObject(parent),
      steps_(new QSpinBox(parent)),
      kv_(new QComboBox(parent)),
      start_(new QWidget(parent)),
      startKind_(new QComboBox(start_)),
      seed_(new QLineEdit(start_)),
      startFile_(new PathEdit(PathEdit::Kind::openFile, u"File of start states"_s,
                              u"Tensors (*.safetensors);;All files (*)"_s, start_)) {
    steps_->setRange(0, static_cast<int>(config_limits::steps));
    steps_->setObjectName(u"steps"_s);
    kv_->setObjectName(u"kv"_s);
    startKind_->setObjectName(u"start"_s);
    seed_->setObjectName(u"seed"_s);
    steps_->setAccessibleName(u"Steps"_s);
    kv_->setAccessibleName(u"Later tokens attend to"_s);
    kv_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    kv_->addItem(QString(), QString());
    for (const char* kv : {"full", "per_step", "shared", "skip"}) {
        const QString name = QString::fromLatin1(kv);
        kv_->addItem(words_of_kv(name), name);
        kv_->setItemData(kv_->count() - 1, kv_meaning(name), Qt::ToolTipRole);
    }
    int widest = 0;
    for (int i = 1; i < kv_->count(); ++i) {
        widest = std::max(widest, kv_->fontMetrics().horizontalAdvance(kv_->itemText(i)));
    }
    kv_->view()->setMinimumWidth(widest + 96); // the default's name is longer than the others
    startKind_->setAccessibleName(u"Start state"_s);
    startKind_->addItem(u"random, of seed"_s, u"random"_s);
    startKind_->addItem(u"zero"_s, u"zero"_s);
    startKind_->addItem(u"of a file"_s, u"file"_s);
    seed_->setAccessibleName(u"Seed of the start state"_s);
    seed_->setToolTip(u"Record several seeds to see how much the start state matters"_s);
    seed_->setPlaceholderText(u"0"_s);
    seed_->setFixedWidth(52);
    seed_->setValidator(new QRegularExpressionValidator(QRegularExpression(u"[0-9]{0,19}"_s), seed_));
    auto* row = new QHBoxLayout(start_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    row->addWidget(startKind_);
    row->addWidget(seed_);
    row->addWidget(startFile_, 1);
    row->addStretch(0);
    start_->setFocusProxy(startKind_);

    connect(steps_, &QSpinBox::valueChanged, this, &RunFields::choose);
    connect(kv_, &QComboBox::currentIndexChanged, this, &RunFields::choose);
    connect(startKind_, &QComboBox::currentIndexChanged, this, &RunFields::choose);
    connect(seed_, &QLineEdit::textChanged, this, &RunFields::choose);
    connect(startFile_, &PathEdit::changed, this, &RunFields::choose);
    setModel({}, {}, {});
}

void RunFields::setModel(const CheckpointAbout& about, const QString& chosenMethod, const QString& policy) {
    const QString method = !chosenMethod.isEmpty() ? chosenMethod
                           : about.ambiguous()     ? QString()
                                                   : about.method;
    const MethodInfo* info = method_info(method.toStdString());
    const QStringList before{whyNoSteps_, whyNoKv_, whyNoStart_, ownSteps_, ownKv_};
    whyNoSteps_ = whyNoKv_ = whyNoStart_ = QString();
    ownSteps_ = u"as config"_s;
    ownKv_ = u"the method's own"_s;
    if (info != nullptr) {
        const bool pondersNot = info->kind == MethodKind::vanilla;
        if (!info->any_steps) {
            whyNoSteps_ = pondersNot ? u"none"_s : u"fixed"_s;
        } else if (!about.method.isEmpty() && method == about.method) {
            ownSteps_ = u"%1 (config)"_s.arg(about.maxSteps + 1);
        }
        if (pondersNot) {
            whyNoKv_ = u"no steps"_s;
        } else if (info->sees_by_own_rule) {
            whyNoKv_ = u"%1's own rule"_s.arg(method);
        } else {
            const bool own = policy.isEmpty() || policy == QLatin1String("learned");
            ownKv_ = info->exits_select && own ? u"default: every step of it (full)"_s
                                               : u"default: its last step so far (per_step)"_s;
        }
    }
    if (!about.folder.isEmpty() && !about.startState) {
        whyNoStart_ = u"the embedding"_s;
    }
    if (before != QStringList{whyNoSteps_, whyNoKv_, whyNoStart_, ownSteps_, ownKv_}) {
        show(); // not at every key, which would disturb what is being typed
    }
}

void RunFields::setChosen(const RunSettings& settings) {
    chosen_ = settings;
    ofFile_ = is_start_file(settings.startState);
    show();
}

QString RunFields::problem() const {
    return ofFile_ && whyNoStart_.isEmpty() && chosen_.startState.isEmpty()
               ? u"Choose the file of start states, or another start state."_s
               : QString();
}

RunSettings RunFields::settings() const {
    return {.steps = whyNoSteps_.isEmpty() ? chosen_.steps : 0,
            .kv = whyNoKv_.isEmpty() ? chosen_.kv : QString(),
            .startState = whyNoStart_.isEmpty() ? chosen_.startState : QString()};
}

void RunFields::show() {
    showing_ = true;
    const RunSettings now = settings();
    steps_->setEnabled(whyNoSteps_.isEmpty());
    steps_->setSpecialValueText(whyNoSteps_.isEmpty() ? ownSteps_ : whyNoSteps_);
    steps_->setValue(now.steps);
    steps_->setToolTip(whyNoSteps_.isEmpty() ? u"Number of recurrences N: steps 0 to N − 1"_s
                                             : u"Fixed: each step of this method has its own weights"_s);
    kv_->setEnabled(whyNoKv_.isEmpty());
    kv_->setItemText(0, whyNoKv_.isEmpty() ? ownKv_ : whyNoKv_);
    kv_->setCurrentIndex(std::max(0, kv_->findData(now.kv)));
    kv_->setToolTip(whyNoKv_.isEmpty()
                        ? u"What later tokens see of a stopped token at each step. Each choice gives other "
                          "results, and none gives those of the full run"_s
                        : u"Only for methods whose steps see each other step by step"_s);
    start_->setEnabled(whyNoStart_.isEmpty());
    startKind_->setItemText(0, whyNoStart_.isEmpty() ? u"random, of seed"_s : whyNoStart_);
    const bool file = ofFile_ && whyNoStart_.isEmpty();
    const bool zero = now.startState == QLatin1String("zero");
    startKind_->setCurrentIndex(file ? 2 : zero ? 1 : 0);
    startKind_->setToolTip(whyNoStart_.isEmpty()
                               ? u"Start state of the recurrence; the run stores it"_s
                               : u"Only recurrent models (huginn, parcae) have a start state"_s);
    if (!file && !zero && seed_->text() != now.startState.section(u':', 1)) {
        seed_->setText(now.startState.section(u':', 1));
    }
    if (file && startFile_->path() != now.startState) { // else it would jump while it is typed
        startFile_->setPath(now.startState);
    }
    seed_->setVisible(!file && !zero && whyNoStart_.isEmpty());
    startFile_->setVisible(file);
    showing_ = false;
}

void RunFields::choose() {
    if (showing_) {
        return;
    }
    if (whyNoSteps_.isEmpty()) {
        chosen_.steps = steps_->value();
    }
    if (whyNoKv_.isEmpty()) {
        chosen_.kv = kv_->currentData().toString();
    }
    if (whyNoStart_.isEmpty()) {
        const QString kind = startKind_->currentData().toString();
        const QString seed = seed_->text();
        const QString random = seed.isEmpty() ? QString() : u"random:"_s + seed;
        QString path = startFile_->path();
        if (!path.isEmpty() && !is_start_file(path)) {
            path.prepend(u"./"_s); // a file that is called zero
        }
        ofFile_ = kind == QLatin1String("file");
        chosen_.startState = ofFile_ ? path : kind == QLatin1String("zero") ? kind : random;
        seed_->setVisible(kind == QLatin1String("random"));
        startFile_->setVisible(ofFile_);
    }
    Q_EMIT changed();
}

QStringList distinct_names(const QStringList& paths) {
    QStringList names;
    for (const QString& path : paths) {
        QString name;
        for (int parts = 1;; ++parts) {
            name = path.section(u'/', -parts, -1, QString::SectionSkipEmpty);
            const auto alike = std::count_if(paths.begin(), paths.end(), [&](const QString& other) {
                return other.section(u'/', -parts, -1, QString::SectionSkipEmpty) == name;
            });
            if (alike == 1 || name.size() + 1 >= path.size()) {
                break;
            }
        }
        names << name;
    }
    return names;
}

PathEdit::PathEdit(Kind kind, const QString& what, const QString& filter, QWidget* parent)
    : QWidget(parent),
      kind_(kind),
      what_(what),
      filter_(filter),
      edit_(new QLineEdit(this)),
      offered_(new QToolButton(this)) {
    setAcceptDrops(true);
    edit_->setAcceptDrops(false); // a file dropped on it is a path, not an address in the text
    edit_->setAccessibleName(what);
    auto* choose = new QPushButton(u"Choose…"_s, this);
    choose->setAutoDefault(false);
    choose->setAccessibleName(u"Choose: %1"_s.arg(what));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    row->addWidget(edit_, 1);
    offered_->setArrowType(Qt::DownArrow);
    offered_->setPopupMode(QToolButton::InstantPopup);
    offered_->setAccessibleName(u"Likely ones: %1"_s.arg(what));
    offered_->setToolTip(u"Checkpoint of the open run, samples and recent checkpoints"_s);
    offered_->hide();
    row->addWidget(offered_);
    row->addWidget(choose);
    setFocusProxy(edit_);
    connect(edit_, &QLineEdit::textChanged, this, &PathEdit::changed);
    connect(choose, &QPushButton::clicked, this, &PathEdit::browse);
}

QString PathEdit::path() const {
    QString path = edit_->text();
    if (path.startsWith(QLatin1String("~/"))) {
        path = QDir::homePath() + path.mid(1);
    }
    return path;
}

void PathEdit::setPath(const QString& path) {
    edit_->setText(path);
}

void PathEdit::offer(const QStringList& paths) {
    auto* menu = new QMenu(offered_);
    menu->setToolTipsVisible(true);
    for (const QString& path : paths) {
        // The folder's own name comes first: the folders above it are often the same.
        const QFileInfo info(path);
        constexpr int widest = 420; // pixels of a folder
        const QString folder = menu->fontMetrics().elidedText(info.path(), Qt::ElideMiddle, widest);
        QAction* action = menu->addAction(u"%1\t%2"_s.arg(info.fileName(), folder).replace(u'&', u"&&"_s),
                                          this, [this, path] { setPath(path); });
        action->setData(path);
        action->setToolTip(plain_tip(path));
    }
    delete offered_->menu();
    offered_->setMenu(menu);
    offered_->setVisible(!paths.isEmpty());
}

void PathEdit::browse() {
    QString chosen;
    switch (kind_) {
    case Kind::folder:
        chosen = QFileDialog::getExistingDirectory(this, what_, path());
        break;
    case Kind::openFile:
        chosen = QFileDialog::getOpenFileName(this, what_, path(), filter_);
        break;
    case Kind::saveFile:
        // A run is added to a trace that exists: nothing is overwritten.
        chosen = QFileDialog::getSaveFileName(this, what_, path(), filter_, nullptr,
                                              QFileDialog::DontConfirmOverwrite);
        break;
    }
    if (!chosen.isEmpty()) {
        setPath(chosen);
    }
}

void PathEdit::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().constFirst().isLocalFile()) {
        event->acceptProposedAction();
    }
}

void PathEdit::dropEvent(QDropEvent* event) {
    setPath(event->mimeData()->urls().constFirst().toLocalFile());
    event->acceptProposedAction();
}

} // namespace ponderscope

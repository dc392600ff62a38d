//! Languages in other scripts than the Latin one. Laid out by hand, as the Latin ones are.

use super::locale::{Locale, NameOrder};

#[rustfmt::skip]
pub const RUSSIAN: Locale = Locale {
    tag: "ru",
    given: &[
        ("Алёна", "alyona"), ("Дмитрий", "dmitry"), ("Ольга", "olga"), ("Семён", "semyon"),
        ("Юлия", "yulia"), ("Артём", "artyom"), ("Наталья", "natalya"), ("Фёдор", "fyodor"),
    ],
    family: &[
        ("Гайдай", "gaidai"), ("Ковальчук", "kovalchuk"), ("Шевченко", "shevchenko"),
        ("Белых", "belykh"), ("Щербак", "shcherbak"), ("Мельник", "melnik"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Алматы", "Рига", "Новосибирск"],
    user_opening: &[
        "Здравствуйте! Заказ {n} до сих пор не пришёл.",
        "Добрый день, можно поменять адрес доставки?",
        "Не могу войти в личный кабинет.",
        "Скажите, а синий ещё будет?",
    ],
    user_middle: &[
        "Да, всё верно.",
        "Номер {n}.",
        "Уже пробовал, не помогает.",
        "А сколько ждать возврата?",
    ],
    user_closing: &["Спасибо большое!", "Хорошо, всего доброго."],
    operator_opening: &["Здравствуйте, {name}! Чем могу помочь?", "{name}, сейчас посмотрю."],
    operator_middle: &[
        "Заказ {n} вчера отправлен со склада.",
        "Возврат занимает от трёх до пяти рабочих дней.",
        "Приносим извинения, уже исправляем.",
        "Подскажите, пожалуйста, номер заказа.",
    ],
    operator_closing: &["Рады были помочь, хорошего дня!", "Остались ли ещё вопросы?"],
    invitation: &["Есть вопросы? Мы онлайн и готовы помочь."],
};

#[rustfmt::skip]
pub const GREEK: Locale = Locale {
    tag: "el",
    given: &[
        ("Ελένη", "eleni"), ("Δήμητρα", "dimitra"), ("Χρυσούλα", "chrysoula"), ("Μαρία", "maria"),
    ],
    family: &[
        ("Παπαδάκη", "papadaki"), ("Οικονόμου", "oikonomou"), ("Βλάχου", "vlachou"),
        ("Ψαρρά", "psarra"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Αθήνα", "Θεσσαλονίκη", "Λευκωσία"],
    user_opening: &[
        "Καλημέρα, η παραγγελία {n} δεν έχει έρθει ακόμα.",
        "Γεια σας, στέλνετε και στην Κύπρο;",
    ],
    user_middle: &["Ναι, αυτή είναι.", "Ο αριθμός είναι {n}.", "Το δοκίμασα ήδη, χωρίς αποτέλεσμα."],
    user_closing: &["Ευχαριστώ πολύ!", "Εντάξει, καλή συνέχεια."],
    operator_opening: &["Καλημέρα {name}, πώς μπορώ να βοηθήσω;", "Το κοιτάζω αμέσως."],
    operator_middle: &[
        "Η παραγγελία {n} έφυγε χθες από την αποθήκη.",
        "Η επιστροφή χρημάτων θέλει τρεις με πέντε εργάσιμες.",
    ],
    operator_closing: &["Να είστε καλά!", "Μπορώ να βοηθήσω σε κάτι άλλο;"],
    invitation: &["Έχετε ερωτήσεις; Είμαστε εδώ."],
};

#[rustfmt::skip]
pub const CHINESE: Locale = Locale {
    tag: "zh",
    given: &[
        ("秀英", "xiuying"), ("伟", "wei"), ("子涵", "zihan"), ("建国", "jianguo"),
        ("雨桐", "yutong"), ("磊", "lei"), ("嘉怡", "jiayi"), ("浩然", "haoran"),
    ],
    family: &[
        ("王", "wang"), ("李", "li"), ("陈", "chen"), ("欧阳", "ouyang"), ("黄", "huang"),
        ("赵", "zhao"), ("吴", "wu"), ("林", "lin"),
    ],
    full_name: NameOrder::FamilyGivenJoined,
    cities: &["上海", "成都", "台北", "新加坡"],
    user_opening: &[
        "你好，我的订单{n}还没有到。",
        "请问这款还有货吗？",
        "在吗？我想改一下收货地址。",
        "为什么扣了两次款？订单号{n}",
    ],
    user_middle: &["对，就是这个。", "订单号是{n}。", "试过了，还是不行。", "退款要多久？"],
    user_closing: &["好的，谢谢！", "明白了，再见。"],
    operator_opening: &["您好，{name}，请问有什么可以帮您？", "您好，我马上为您查询。"],
    operator_middle: &[
        "订单{n}昨天已经发货了。",
        "退款会在三到五个工作日内到账。",
        "非常抱歉给您带来不便，我们马上处理。",
        "麻烦提供一下订单号。",
    ],
    operator_closing: &["不客气，祝您生活愉快！", "请问还有其他问题吗？"],
    invitation: &["您好，有什么可以帮到您吗？"],
};

#[rustfmt::skip]
pub const JAPANESE: Locale = Locale {
    tag: "ja",
    given: &[
        ("さくら", "sakura"), ("大輔", "daisuke"), ("陽菜", "hina"), ("健太", "kenta"),
        ("美咲", "misaki"), ("翔", "sho"), ("ひろし", "hiroshi"), ("リサ", "risa"),
    ],
    family: &[
        ("佐藤", "sato"), ("高橋", "takahashi"), ("渡辺", "watanabe"), ("小林", "kobayashi"),
        ("吉田", "yoshida"), ("斎藤", "saito"), ("井上", "inoue"), ("森", "mori"),
    ],
    full_name: NameOrder::FamilyGiven,
    cities: &["東京", "大阪", "札幌", "福岡"],
    user_opening: &[
        "こんにちは。注文{n}がまだ届いていません。",
        "すみません、配送先を変更できますか？",
        "ログインできなくなりました。",
        "青色の再入荷予定はありますか？",
    ],
    user_middle: &[
        "はい、そうです。",
        "注文番号は{n}です。",
        "試しましたが、変わりませんでした。",
        "スクリーンショットを添付しました。",
    ],
    user_closing: &["ありがとうございました！", "承知しました。失礼します。"],
    operator_opening: &[
        "{name}様、お問い合わせありがとうございます。",
        "こんにちは。ただいま確認いたします。",
    ],
    operator_middle: &[
        "ご注文{n}は昨日発送いたしました。",
        "返金には三〜五営業日ほどかかります。",
        "ご不便をおかけして申し訳ございません。",
        "ご注文番号をお知らせいただけますか？",
    ],
    operator_closing: &["またのご利用をお待ちしております。", "ほかにご質問はございますか？"],
    invitation: &["何かお困りですか？ただいまオンラインです。"],
};

#[rustfmt::skip]
pub const KOREAN: Locale = Locale {
    tag: "ko",
    given: &[
        ("서연", "seoyeon"), ("민준", "minjun"), ("하윤", "hayoon"), ("지훈", "jihoon"),
        ("수빈", "subin"), ("도현", "dohyun"),
    ],
    family: &[
        ("김", "kim"), ("이", "lee"), ("박", "park"), ("최", "choi"), ("정", "jung"), ("한", "han"),
    ],
    full_name: NameOrder::FamilyGivenJoined,
    cities: &["서울", "부산", "대전"],
    user_opening: &[
        "안녕하세요, 주문 {n}이 아직 도착하지 않았어요.",
        "배송지를 바꿀 수 있을까요?",
        "로그인이 안 돼요.",
    ],
    user_middle: &["네, 맞아요.", "주문번호는 {n}입니다.", "해 봤는데 안 되네요."],
    user_closing: &["감사합니다!", "네, 알겠습니다. 수고하세요."],
    operator_opening: &["안녕하세요 {name}님, 무엇을 도와드릴까요?", "잠시만요, 확인해 보겠습니다."],
    operator_middle: &[
        "주문 {n}은 어제 발송되었습니다.",
        "환불은 영업일 기준 3~5일 걸립니다.",
        "불편을 드려 죄송합니다.",
    ],
    operator_closing: &["좋은 하루 보내세요!", "더 궁금하신 점이 있으신가요?"],
    invitation: &["궁금한 점이 있으신가요? 지금 상담 가능합니다."],
};

#[rustfmt::skip]
pub const ARABIC: Locale = Locale {
    tag: "ar",
    given: &[
        ("فاطمة", "fatima"), ("يوسف", "youssef"), ("ليلى", "layla"), ("عمر", "omar"),
        ("نور", "nour"), ("خالد", "khaled"),
    ],
    family: &[
        ("الخطيب", "alkhatib"), ("حداد", "haddad"), ("منصور", "mansour"), ("العلي", "alali"),
        ("النجار", "alnajjar"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["القاهرة", "عمّان", "الدار البيضاء"],
    user_opening: &[
        "السلام عليكم، لم يصل طلبي رقم {n} بعد.",
        "مرحبا، هل يمكنني تغيير عنوان التوصيل؟",
        "لا أستطيع الدخول إلى حسابي.",
    ],
    user_middle: &["نعم، هذا صحيح.", "رقم الطلب {n}.", "جرّبت ذلك ولم ينجح."],
    user_closing: &["شكرا جزيلا!", "حسنا، مع السلامة."],
    operator_opening: &["أهلا {name}، كيف يمكنني مساعدتك؟", "لحظة من فضلك، سأتحقق الآن."],
    operator_middle: &[
        "تم شحن الطلب {n} أمس من المستودع.",
        "يستغرق استرداد المبلغ من ثلاثة إلى خمسة أيام عمل.",
        "نعتذر عن الإزعاج، سنحل المشكلة فورا.",
    ],
    operator_closing: &["على الرحب والسعة!", "هل تحتاج إلى شيء آخر؟"],
    invitation: &["هل لديك سؤال؟ نحن متصلون الآن."],
};

#[rustfmt::skip]
pub const HEBREW: Locale = Locale {
    tag: "he",
    given: &[("נועה", "noa"), ("איתי", "itai"), ("תמר", "tamar"), ("אורי", "uri")],
    family: &[("כהן", "cohen"), ("מזרחי", "mizrahi"), ("פרץ", "peretz"), ("ברק", "barak")],
    full_name: NameOrder::GivenFamily,
    cities: &["חיפה", "תל אביב", "באר שבע"],
    user_opening: &["שלום, הזמנה {n} עדיין לא הגיעה.", "היי, אפשר לשנות כתובת למשלוח?"],
    user_middle: &["כן, בדיוק.", "המספר הוא {n}.", "ניסיתי כבר, זה לא עזר."],
    user_closing: &["תודה רבה!", "מעולה, להתראות."],
    operator_opening: &["שלום {name}, איך אפשר לעזור?", "רגע, אני בודקת."],
    operator_middle: &["הזמנה {n} יצאה אתמול מהמחסן.", "ההחזר לוקח שלושה עד חמישה ימי עסקים."],
    operator_closing: &["בשמחה, יום נעים!", "יש עוד משהו שאפשר לעזור בו?"],
    invitation: &["יש שאלה? אנחנו מחוברים עכשיו."],
};

#[rustfmt::skip]
pub const HINDI: Locale = Locale {
    tag: "hi",
    given: &[
        ("प्रिया", "priya"), ("अर्जुन", "arjun"), ("काव्या", "kavya"), ("रोहित", "rohit"),
        ("श्रेया", "shreya"),
    ],
    family: &[
        ("शर्मा", "sharma"), ("पटेल", "patel"), ("मिश्रा", "mishra"), ("नायर", "nair"),
        ("गुप्ता", "gupta"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["मुंबई", "जयपुर", "पुणे"],
    user_opening: &["नमस्ते, मेरा ऑर्डर {n} अभी तक नहीं आया।", "क्या मैं डिलीवरी का पता बदल सकती हूँ?"],
    user_middle: &["जी हाँ, वही।", "ऑर्डर नंबर {n} है।", "यह कर चुका हूँ, फ़र्क नहीं पड़ा।"],
    user_closing: &["बहुत धन्यवाद!", "ठीक है, नमस्ते।"],
    operator_opening: &["नमस्ते {name}, मैं आपकी क्या सहायता कर सकती हूँ?", "एक मिनट, मैं देखता हूँ।"],
    operator_middle: &["ऑर्डर {n} कल गोदाम से निकल चुका है।", "रिफ़ंड में तीन से पाँच दिन लगते हैं।"],
    operator_closing: &["आपका दिन शुभ हो!", "क्या और कोई सहायता चाहिए?"],
    invitation: &["कोई सवाल है? हम अभी ऑनलाइन हैं।"],
};

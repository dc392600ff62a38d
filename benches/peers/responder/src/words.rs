//! What people write in chats, by language; the more people write it, the more often it stands here.

pub struct Language {
    pub names: &'static [&'static str],
    pub phrases: &'static [&'static str],
}

/// How many people share a language, out of the sum of all.
pub const LANGUAGES: [(usize, &Language); 9] = [
    (9, &ENGLISH),
    (2, &GERMAN),
    (2, &SPANISH),
    (1, &FRENCH),
    (1, &POLISH),
    (1, &RUSSIAN),
    (1, &ARABIC),
    (1, &HINDI),
    (1, &JAPANESE),
];

const ENGLISH: Language = Language {
    names: &[
        "Emily Carter",
        "Jack O'Neill",
        "Priya Shah",
        "Tom Whitfield",
        "Grace Kim",
    ],
    phrases: &[
        "Hi, I have a question about my last order.",
        "Thanks!",
        "ok",
        "One more thing: can two people use the same account?",
        "No, sorry.",
        "Let me check that for you, one moment please.",
        "The \"export\" button does nothing when I click it.",
        "It says the card was declined, but my bank sees nothing wrong with it 🤔",
        "Could you send me the invoice again?\nThe one from March is missing.",
        "You can find it under Settings, Billing, Invoices.",
        "Perfect, that worked 🎉",
        "Is there a discount if we take more than 20 seats?",
        "Sorry for the wait! I have forwarded this to our technical team and they will reply by e-mail.",
        "https://example.com/help/articles/4711-how-to-reset-your-password",
    ],
};

const GERMAN: Language = Language {
    names: &["Jürgen Groß", "Anna Müller", "Käthe Weiß"],
    phrases: &[
        "Guten Tag, meine Bestellung ist noch nicht angekommen.",
        "Vielen Dank, das hat geholfen!",
        "Können Sie mir bitte die Rechnung noch einmal schicken?",
        "Ich prüfe das gern für Sie, einen Augenblick bitte.",
        "Die Größe passt leider nicht, kann ich umtauschen?",
        "Super 👍",
    ],
};

const SPANISH: Language = Language {
    names: &["José Núñez", "María Ibáñez", "Íñigo Peña"],
    phrases: &[
        "Hola, ¿me pueden ayudar con un pedido?",
        "¡Muchas gracias!",
        "No me ha llegado el correo con la factura.",
        "Claro, por favor indique el pedido y la fecha.",
        "¿Cuánto tarda el envío a Córdoba?",
        "Ya funciona, gracias 😊",
    ],
};

const FRENCH: Language = Language {
    names: &["Zoé Lefèvre", "François Béranger"],
    phrases: &[
        "Bonjour, je n'arrive pas à me connecter à mon compte.",
        "Merci beaucoup, c'est réglé !",
        "Pouvez-vous m'indiquer votre numéro de commande, s'il vous plaît ?",
        "Le paiement a été refusé à deux reprises.",
    ],
};

const POLISH: Language = Language {
    names: &["Łukasz Wójcik", "Małgorzata Żak"],
    phrases: &[
        "Dzień dobry, kiedy wyślą Państwo moje zamówienie?",
        "Dziękuję, wszystko już działa.",
        "Proszę chwilę poczekać, sprawdzę to w systemie.",
        "Czy można zapłacić przelewem?",
    ],
};

const RUSSIAN: Language = Language {
    names: &["Мария Соколова", "Дмитрий Ёлкин"],
    phrases: &[
        "Здравствуйте, не приходит письмо с подтверждением.",
        "Спасибо, всё заработало!",
        "Сейчас проверю, подождите минуту.",
        "Когда будет доставка?",
    ],
};

const ARABIC: Language = Language {
    names: &["ليلى حسن", "يوسف العلي"],
    phrases: &[
        "مرحبا، لدي سؤال عن طلبي الأخير.",
        "شكرا جزيلا لكم",
        "لحظة من فضلك، سأتحقق من ذلك.",
        "متى يصل الطرد؟",
    ],
};

const HINDI: Language = Language {
    names: &["अनन्या शर्मा", "रोहन गुप्ता"],
    phrases: &[
        "नमस्ते, मेरा भुगतान अटक गया है।",
        "धन्यवाद 🙏",
        "कृपया एक मिनट रुकिए, मैं देखता हूँ।",
        "डिलीवरी कब होगी?",
    ],
};

const JAPANESE: Language = Language {
    names: &["佐藤 花子", "鈴木 一郎"],
    phrases: &[
        "すみません、注文の確認メールが届きません。",
        "ありがとうございました！",
        "ただいま確認いたしますので、少々お待ちください。",
        "返品はできますか？",
    ],
};

/// What is said in a few words.
pub const SHORT: [&str; 10] = [
    "ok",
    "Thanks!",
    "yes please",
    "no, sorry",
    "on it",
    "👍",
    "see above",
    "one moment please",
    "danke schön",
    "まだです",
];

/// Forename, surname, and the key of the picture if there is one.
pub const OPERATORS: [(&str, &str, Option<&str>); 5] = [
    ("Sam", "Rivera", Some("b7f1c0d2e4a84f5c")),
    ("Åsa", "Lindqvist", Some("0d9a6be13f7745d8")),
    ("Noor", "Haddad", None),
    ("Kenji", "Watanabe", Some("5c2e8f90ab714c63")),
    ("Lucía", "Fernández", None),
];

pub const PLACES: [&str; 6] = [
    "",
    "pricing",
    "orders/2291",
    "help",
    "account/billing",
    "blog/what-is-new",
];

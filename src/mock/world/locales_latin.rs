//! Languages in the Latin script. Laid out by hand, for rows of names take less room than columns.

use super::locale::{Locale, NameOrder};

#[rustfmt::skip]
pub const ENGLISH: Locale = Locale {
    tag: "en",
    given: &[
        ("Emma", "emma"), ("Oliver", "oliver"), ("Grace", "grace"), ("Liam", "liam"),
        ("Amelia", "amelia"), ("Noah", "noah"), ("Chloe", "chloe"), ("Ethan", "ethan"),
        ("Zoë", "zoe"), ("Lucas", "lucas"), ("Ruby", "ruby"), ("Samuel", "samuel"),
        ("Siobhán", "siobhan"), ("Isaac", "isaac"), ("Hannah", "hannah"), ("Owen", "owen"),
    ],
    family: &[
        ("Smith", "smith"), ("Taylor", "taylor"), ("O'Brien", "obrien"), ("Johnson", "johnson"),
        ("Walker", "walker"), ("Hughes", "hughes"), ("Clarke", "clarke"), ("Wright", "wright"),
        ("Bennett", "bennett"), ("Murphy", "murphy"), ("Campbell", "campbell"), ("Reid", "reid"),
        ("Foster", "foster"), ("Hayes", "hayes"), ("Doyle", "doyle"), ("Mitchell", "mitchell"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["London", "Dublin", "Toronto", "Sydney", "Leeds", "Chicago"],
    user_opening: &[
        "Hi! I ordered two weeks ago and order {n} still has not arrived.",
        "Hello, can I change the delivery address on order {n}?",
        "Hey, is the blue one in stock again?",
        "Good morning, I was charged twice for order {n}.",
        "Hi there, I can't log in - it says \"account locked\".",
        "Do you ship to Northern Ireland?",
        "Hello? Is anyone there?",
        "I need an invoice for order {n}, please.",
    ],
    user_middle: &[
        "Yes, that's the one.",
        "ok",
        "The number is {n}.",
        "I already tried that, it didn't help.",
        "It was supposed to be a birthday present, so I'm a bit worried.",
        "Let me check… one moment.",
        "The page just says \"Error 500\" & then goes blank.",
        "Could you send it to my work address instead?",
        "How long does the refund usually take?",
        "I have attached a screenshot.",
    ],
    user_closing: &[
        "Great, thanks a lot!",
        "Perfect, that worked. Bye!",
        "Thank you, you've been very helpful.",
        "OK, I'll wait for the e-mail then.",
    ],
    operator_opening: &[
        "Hello {name}, how can I help you today?",
        "Hi {name}, thanks for getting in touch. Let me have a look.",
        "Good day {name}, you're through to support.",
    ],
    operator_middle: &[
        "Could you give me the order number, please?",
        "I can see order {n} here; it left our warehouse yesterday.",
        "I have asked the carrier and will get back to you within the hour.",
        "The refund has been issued, it takes 3-5 working days.",
        "Please try this: clear the cache, then sign in again.",
        "I've updated the address for you.",
        "Sorry about that! Let me put this right.",
        "We expect it back in stock next week; shall I let you know?",
    ],
    operator_closing: &[
        "Is there anything else I can do for you?",
        "You're welcome, {name}. Have a lovely day!",
        "Glad I could help. Bye for now!",
    ],
    invitation: &[
        "Hi! Any questions? We're online right now.",
        "Welcome back! Can we help you find something?",
    ],
};

#[rustfmt::skip]
pub const GERMAN: Locale = Locale {
    tag: "de",
    given: &[
        ("Jürgen", "juergen"), ("Lena", "lena"), ("Björn", "bjoern"), ("Käthe", "kaethe"),
        ("Lukas", "lukas"), ("Sophie", "sophie"), ("Jörg", "joerg"), ("Anja", "anja"),
    ],
    family: &[
        ("Müller", "mueller"), ("Schäfer", "schaefer"), ("Weiß", "weiss"), ("Köhler", "koehler"),
        ("Schmidt", "schmidt"), ("Vogel", "vogel"), ("Groß", "gross"), ("Becker", "becker"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Köln", "Zürich", "Wien", "Düsseldorf"],
    user_opening: &[
        "Guten Tag, meine Bestellung {n} ist noch nicht angekommen.",
        "Hallo, kann ich die Größe bei {n} noch ändern?",
        "Grüß Gott, liefern Sie auch nach Österreich?",
        "Ich komme nicht mehr in mein Konto.",
    ],
    user_middle: &[
        "Ja, genau.",
        "Die Nummer lautet {n}.",
        "Das habe ich schon versucht, leider ohne Erfolg.",
        "Könnten Sie mir das bitte schriftlich bestätigen?",
    ],
    user_closing: &["Vielen Dank für die schnelle Hilfe!", "Alles klar, tschüss!"],
    operator_opening: &[
        "Guten Tag {name}, wie kann ich Ihnen helfen?",
        "Hallo {name}, ich schaue gleich nach.",
    ],
    operator_middle: &[
        "Die Bestellung {n} wurde gestern verschickt.",
        "Bitte leeren Sie den Cache und melden Sie sich erneut an.",
        "Die Gutschrift dauert drei bis fünf Werktage.",
        "Das tut mir leid, ich kümmere mich sofort darum.",
    ],
    operator_closing: &["Sehr gerne, schönen Tag noch!", "Kann ich sonst noch etwas für Sie tun?"],
    invitation: &["Haben Sie Fragen? Wir sind gerade online."],
};

#[rustfmt::skip]
pub const FRENCH: Locale = Locale {
    tag: "fr",
    given: &[
        ("Élodie", "elodie"), ("François", "francois"), ("Chloé", "chloe"), ("Hélène", "helene"),
        ("Théo", "theo"), ("Camille", "camille"), ("Benoît", "benoit"), ("Zoé", "zoe"),
    ],
    family: &[
        ("Lefèvre", "lefevre"), ("Dubois", "dubois"), ("Béranger", "beranger"), ("Roux", "roux"),
        ("Gauthier", "gauthier"), ("Noël", "noel"), ("Girard", "girard"), ("Lemaître", "lemaitre"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Lyon", "Genève", "Montréal", "Besançon"],
    user_opening: &[
        "Bonjour, ma commande {n} n'est toujours pas arrivée.",
        "Bonsoir, est-ce que ce modèle existe en bleu ?",
        "Bonjour, j'ai été débitée deux fois pour la commande {n}.",
        "Livrez-vous en Belgique ?",
    ],
    user_middle: &[
        "Oui, c'est bien ça.",
        "Le numéro est {n}.",
        "J'ai déjà essayé, ça ne marche pas…",
        "Pourriez-vous l'envoyer à une autre adresse ?",
    ],
    user_closing: &["Merci beaucoup, bonne journée !", "Parfait, merci à vous."],
    operator_opening: &[
        "Bonjour {name}, que puis-je faire pour vous ?",
        "Bonjour {name}, je regarde tout de suite.",
    ],
    operator_middle: &[
        "La commande {n} est partie hier de notre entrepôt.",
        "Le remboursement prend trois à cinq jours ouvrés.",
        "Je suis désolé pour ce désagrément, je m'en occupe.",
        "Pouvez-vous me donner le numéro de commande ?",
    ],
    operator_closing: &["Avec plaisir, bonne journée !", "Puis-je vous aider pour autre chose ?"],
    invitation: &["Une question ? Nous sommes en ligne."],
};

#[rustfmt::skip]
pub const SPANISH: Locale = Locale {
    tag: "es",
    given: &[
        ("José", "jose"), ("Lucía", "lucia"), ("Íñigo", "inigo"), ("María", "maria"),
        ("Andrés", "andres"), ("Sofía", "sofia"), ("Martín", "martin"), ("Begoña", "begona"),
    ],
    family: &[
        ("García", "garcia"), ("Muñoz", "munoz"), ("Núñez", "nunez"), ("Fernández", "fernandez"),
        ("Ibáñez", "ibanez"), ("Rojas", "rojas"), ("Peña", "pena"), ("Vázquez", "vazquez"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Bogotá", "Málaga", "Córdoba", "Ciudad de México"],
    user_opening: &[
        "¡Hola! Mi pedido {n} todavía no ha llegado.",
        "Buenos días, ¿hacen envíos a Canarias?",
        "Hola, ¿puedo cambiar la talla del pedido {n}?",
        "No puedo entrar en mi cuenta.",
    ],
    user_middle: &[
        "Sí, ese mismo.",
        "El número es {n}.",
        "Ya lo he intentado y sigue igual.",
        "¿Cuánto tarda la devolución?",
    ],
    user_closing: &["¡Muchas gracias!", "Perfecto, hasta luego."],
    operator_opening: &[
        "¡Hola, {name}! ¿En qué puedo ayudarte?",
        "Buenos días, {name}, lo reviso ahora mismo.",
    ],
    operator_middle: &[
        "El pedido {n} salió ayer del almacén.",
        "La devolución tarda de tres a cinco días hábiles.",
        "Siento mucho las molestias, lo arreglo enseguida.",
        "¿Me das el número de pedido, por favor?",
    ],
    operator_closing: &["¡A ti! Que tengas un buen día.", "¿Necesitas algo más?"],
    invitation: &["¿Tienes alguna pregunta? Estamos en línea."],
};

#[rustfmt::skip]
pub const PORTUGUESE: Locale = Locale {
    tag: "pt",
    given: &[
        ("João", "joao"), ("Inês", "ines"), ("Antônio", "antonio"), ("Luísa", "luisa"),
        ("Caio", "caio"), ("Letícia", "leticia"), ("Tomás", "tomas"), ("Conceição", "conceicao"),
    ],
    family: &[
        ("Gonçalves", "goncalves"), ("Araújo", "araujo"), ("Simões", "simoes"), ("Lima", "lima"),
        ("Magalhães", "magalhaes"), ("Rocha", "rocha"), ("Assunção", "assuncao"), ("Dias", "dias"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["São Paulo", "Lisboa", "Florianópolis", "Braga"],
    user_opening: &[
        "Oi! Meu pedido {n} ainda não chegou.",
        "Bom dia, vocês entregam em Maceió?",
        "Olá, fui cobrado duas vezes no pedido {n}.",
    ],
    user_middle: &[
        "Isso mesmo.",
        "O número é {n}.",
        "Já tentei isso e não funcionou.",
        "Não consigo anexar a foto aqui.",
    ],
    user_closing: &["Muito obrigada!", "Valeu, até mais!"],
    operator_opening: &["Olá, {name}! Como posso ajudar?", "Oi, {name}, só um instante."],
    operator_middle: &[
        "O pedido {n} saiu ontem do nosso depósito.",
        "O estorno leva de três a cinco dias úteis.",
        "Peço desculpas, vou resolver agora.",
    ],
    operator_closing: &["Por nada! Tenha um ótimo dia.", "Posso ajudar em mais alguma coisa?"],
    invitation: &["Alguma dúvida? Estamos online!"],
};

#[rustfmt::skip]
pub const POLISH: Locale = Locale {
    tag: "pl",
    given: &[
        ("Łukasz", "lukasz"), ("Małgorzata", "malgorzata"), ("Jędrzej", "jedrzej"),
        ("Zofia", "zofia"), ("Michał", "michal"), ("Grażyna", "grazyna"),
    ],
    family: &[
        ("Wójcik", "wojcik"), ("Nowak", "nowak"), ("Zając", "zajac"),
        ("Mazur", "mazur"), ("Gołąb", "golab"), ("Kaczmarek", "kaczmarek"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["Łódź", "Kraków", "Wrocław"],
    user_opening: &[
        "Dzień dobry, zamówienie {n} jeszcze nie dotarło.",
        "Cześć, czy mogę zmienić adres dostawy?",
        "Nie mogę się zalogować na swoje konto.",
    ],
    user_middle: &["Tak, zgadza się.", "Numer to {n}.", "Już próbowałam, nie działa."],
    user_closing: &["Dziękuję bardzo!", "Świetnie, do widzenia."],
    operator_opening: &["Dzień dobry, {name}, w czym mogę pomóc?", "Już sprawdzam, {name}."],
    operator_middle: &[
        "Zamówienie {n} wyszło wczoraj z magazynu.",
        "Zwrot środków trwa od trzech do pięciu dni.",
        "Przepraszam za kłopot, zaraz to naprawię.",
    ],
    operator_closing: &["Miłego dnia!", "Czy mogę jeszcze w czymś pomóc?"],
    invitation: &["Masz pytanie? Jesteśmy online."],
};

#[rustfmt::skip]
pub const TURKISH: Locale = Locale {
    tag: "tr",
    given: &[
        ("Ayşe", "ayse"), ("Çağlar", "caglar"), ("İpek", "ipek"), ("Gökhan", "gokhan"),
        ("Işıl", "isil"), ("Oğuz", "oguz"),
    ],
    family: &[
        ("Yılmaz", "yilmaz"), ("Öztürk", "ozturk"), ("Şahin", "sahin"), ("Koç", "koc"),
        ("Güneş", "gunes"), ("Aydın", "aydin"),
    ],
    full_name: NameOrder::GivenFamily,
    cities: &["İstanbul", "İzmir", "Eskişehir"],
    user_opening: &[
        "Merhaba, {n} numaralı siparişim hâlâ gelmedi.",
        "İyi günler, adresimi değiştirebilir miyim?",
        "Hesabıma giriş yapamıyorum.",
    ],
    user_middle: &["Evet, doğru.", "Sipariş numarası {n}.", "Bunu denedim ama işe yaramadı."],
    user_closing: &["Çok teşekkür ederim!", "Tamam, iyi çalışmalar."],
    operator_opening: &["Merhaba {name}, size nasıl yardımcı olabilirim?", "Hemen bakıyorum."],
    operator_middle: &[
        "{n} numaralı sipariş dün kargoya verildi.",
        "İade üç ile beş iş günü sürer.",
        "Özür dileriz, hemen ilgileniyorum.",
    ],
    operator_closing: &["İyi günler dilerim!", "Başka bir sorunuz var mı?"],
    invitation: &["Sorunuz mu var? Şu an çevrimiçiyiz."],
};

#[rustfmt::skip]
pub const VIETNAMESE: Locale = Locale {
    tag: "vi",
    given: &[
        ("Hương", "huong"), ("Đức", "duc"), ("Thảo", "thao"), ("Quỳnh", "quynh"),
        ("Tuấn", "tuan"), ("Mỹ Linh", "mylinh"),
    ],
    family: &[
        ("Nguyễn", "nguyen"), ("Trần", "tran"), ("Phạm", "pham"), ("Võ", "vo"), ("Đặng", "dang"),
    ],
    full_name: NameOrder::FamilyGiven,
    cities: &["Hà Nội", "Đà Nẵng", "Cần Thơ"],
    user_opening: &[
        "Chào shop, đơn hàng {n} của mình vẫn chưa tới.",
        "Cho mình hỏi sản phẩm này còn hàng không ạ?",
    ],
    user_middle: &["Dạ đúng rồi.", "Mã đơn là {n} ạ.", "Mình thử rồi mà không được."],
    user_closing: &["Cảm ơn bạn nhiều!", "Dạ vâng, chào bạn."],
    operator_opening: &["Chào {name}, mình có thể giúp gì cho bạn?", "Bạn chờ mình chút nhé."],
    operator_middle: &[
        "Đơn {n} đã rời kho hôm qua.",
        "Tiền hoàn sẽ về sau ba đến năm ngày làm việc.",
        "Xin lỗi bạn vì sự bất tiện này.",
    ],
    operator_closing: &["Chúc bạn một ngày tốt lành!", "Bạn cần hỗ trợ gì thêm không?"],
    invitation: &["Bạn cần tư vấn không? Chúng tôi đang trực tuyến."],
};

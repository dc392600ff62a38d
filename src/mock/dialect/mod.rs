//! What the interface leaves open, as switches. Each value is a guess at what a service might do.

pub mod order;
pub mod row_mutation;

use std::fmt;
use std::str::FromStr;

use super::routes::{DEFAULT_LIMIT, MAX_LIMIT};
use super::switch::{UpTo, switch_enum};
use super::world::Hints;

switch_enum! {
    /// The response to a `limit` outside 1 to `max_limit`.
    OverLimit {
        /// 422.
        Refuse = "refuse",
        /// The nearest allowed limit, which the envelope states.
        Clamp = "clamp",
        /// The default page size, as if no limit had been given.
        Ignore = "ignore",
    }
}

switch_enum! {
    /// The order of lists.
    Order {
        /// By id, the oldest first.
        Id = "id",
        /// By id, the newest first: rows added later appear at the start.
        Newest = "newest",
        /// By a coarse value that eight neighbours share; the order among them changes with every
        /// request.
        Ties = "ties",
        /// A new order for every request.
        Shuffled = "shuffled",
    }
}

switch_enum! {
    /// The `total` of the envelope.
    Total {
        /// The current number of rows.
        Exact = "exact",
        /// The number of rows when the lane began.
        Stale = "stale",
        /// Never more than `total_cap`.
        Capped = "capped",
        /// Null.
        Null = "null",
        /// Too small by a tenth plus one.
        Low = "low",
        /// Too large by a tenth plus one.
        High = "high",
    }
}

switch_enum! {
    /// What a list returns for an offset past its end.
    PastEnd {
        /// A page without rows.
        Empty = "empty",
        /// 404.
        NotFound = "not_found",
        /// The last page, with the offset where it begins.
        LastPage = "last_page",
    }
}

switch_enum! {
    /// Whether fields other than `id` are null or missing beyond what the interface documents.
    Nulls {
        /// Only `file_url` and `picture_thumb_url` (interface 2.2).
        Documented = "documented",
        /// A fifth of all fields.
        Null = "null",
        /// A fifth of all fields is missing.
        Missing = "missing",
        /// A tenth of all fields is null, and a tenth is missing.
        Both = "both",
    }
}

switch_enum! {
    /// Who sends messages.
    SenderType {
        /// Users and operators (interface 2.2).
        Documented = "documented",
        /// One message in six comes from a bot, the system or an API, and its sender has another
        /// shape.
        Others = "others",
    }
}

switch_enum! {
    /// Whether there are fields that the interface does not name.
    ExtraFields {
        /// There are none.
        None = "none",
        /// On envelopes, users, messages and senders.
        Some = "some",
    }
}

switch_enum! {
    /// The form of ids in bodies; paths always take the number.
    Ids {
        /// Numbers below 2^53.
        Integer = "integer",
        /// The world's ids plus 2^62: more than a double can hold exactly.
        Large = "large",
        /// Decimal text, which the interface does not allow.
        Text = "text",
    }
}

switch_enum! {
    /// Where the files of messages are.
    Files {
        /// On a host that does not exist.
        Elsewhere = "elsewhere",
        /// On the mock, by relative links.
        Own = "own",
    }
}

switch_enum! {
    /// Whether a page may have fewer rows than its `limit` although more follow.
    ShortPages {
        /// Only the last page is short.
        None = "none",
        /// A third of all pages is short.
        Some = "some",
    }
}

switch_enum! {
    /// The response to a request that the interface does not allow.
    Strict {
        /// 401 without the bearer, 406 for another Accept, 422 for another query.
        Yes = "yes",
        /// A normal response: requests without a bearer go to the default lane, Accept is ignored,
        /// and so are invalid query arguments.
        No = "no",
    }
}

/// Defines a dialect's switches: the name, the type and the documented value of each.
macro_rules! dialect {
    ($($(#[$about:meta])* $name:ident: $kind:ty = $documented:expr),+ $(,)?) => {
        /// The undocumented behaviour of one service.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Dialect {
            $($(#[$about])* pub $name: $kind),+
        }

        impl Dialect {
            /// Strictly as the interface document says; the simplest guess where it says nothing.
            pub const DOCUMENTED: Self = Self { $($name: $documented),+ };

            /// Sets one switch by its name.
            ///
            /// # Errors
            /// What is wrong with the name or the value, and which ones exist.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
                let at = |problem: String| format!("{name}: {problem}");
                match name {
                    $(stringify!($name) => self.$name = value.parse().map_err(at)?,)+
                    _ => {
                        let names = [$(stringify!($name)),+].join(", ");
                        return Err(format!(
                            "a dialect has no switch {name:?}; there are {names}"
                        ));
                    }
                }
                Ok(())
            }

            /// Every switch with its value, as text.
            pub fn switches(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.to_string())),+]
            }
        }
    };
}

dialect! {
    strict: Strict = Strict::Yes,
    over_limit: OverLimit = OverLimit::Refuse,
    /// The largest page.
    max_limit: UpTo<MAX_LIMIT> = UpTo::new(MAX_LIMIT),
    /// The default page size.
    default_limit: UpTo<MAX_LIMIT> = UpTo::new(DEFAULT_LIMIT),
    order: Order = Order::Id,
    total: Total = Total::Exact,
    /// The cap of `total=capped`.
    total_cap: UpTo<{ i64::MAX as u64 }> = UpTo::new(10_000),
    past_end: PastEnd = PastEnd::Empty,
    nulls: Nulls = Nulls::Documented,
    sender_type: SenderType = SenderType::Documented,
    extra_fields: ExtraFields = ExtraFields::None,
    ids: Ids = Ids::Integer,
    short_pages: ShortPages = ShortPages::None,
    hints: Hints = Hints::Follow,
    files: Files = Files::Elsewhere,
}

/// The bundles by name.
pub const BUNDLES: [(&str, Dialect); 3] = [
    ("documented", Dialect::DOCUMENTED),
    ("lenient", Dialect::LENIENT),
    ("hostile", Dialect::HOSTILE),
];

impl Dialect {
    /// A service that answers whatever it can make sense of, and sends more than it must.
    pub const LENIENT: Self = Self {
        strict: Strict::No,
        over_limit: OverLimit::Clamp,
        extra_fields: ExtraFields::Some,
        ..Self::DOCUMENTED
    };

    /// The worst behaviour that a patient client can still read completely.
    pub const HOSTILE: Self = Self {
        over_limit: OverLimit::Clamp,
        max_limit: UpTo::new(50),
        default_limit: UpTo::new(10),
        order: Order::Ties,
        total: Total::Stale,
        nulls: Nulls::Both,
        sender_type: SenderType::Others,
        extra_fields: ExtraFields::Some,
        short_pages: ShortPages::Some,
        ..Self::DOCUMENTED
    };

    /// Whether every response conforms to the interface document (its OpenAPI form).
    pub fn conforms(&self) -> bool {
        self.total != Total::Null
            && self.past_end != PastEnd::NotFound
            && self.nulls == Nulls::Documented
            && self.ids != Ids::Text
    }

    /// Whether rows are sent as the world has them.
    pub fn keeps_rows(&self) -> bool {
        self.nulls == Nulls::Documented
            && self.sender_type == SenderType::Documented
            && self.extra_fields == ExtraFields::None
            && self.ids == Ids::Integer
            && self.files == Files::Elsewhere
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::DOCUMENTED
    }
}

/// `BUNDLE [switch=value]...`, such as `hostile order=newest`; without a bundle, `documented`.
impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().peekable();
        let bundle = words.next_if(|word| !word.contains('='));
        let mut dialect = match bundle {
            None => Self::DOCUMENTED,
            Some(name) => BUNDLES
                .iter()
                .find(|(bundle, _)| *bundle == name)
                .map(|(_, dialect)| *dialect)
                .ok_or_else(|| {
                    let names = BUNDLES.map(|(bundle, _)| bundle).join(", ");
                    format!("there is no dialect {name:?}; choose one of {names}")
                })?,
        };
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word:?} is not switch=value, such as order=newest"))?;
            dialect.set(name, value)?;
        }
        Ok(dialect)
    }
}

/// The nearest bundle and the differences from it; parses back to the same dialect.
impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.switches();
        let differences = |bundle: &Self| {
            let theirs = bundle.switches();
            let pairs = own.iter().zip(theirs);
            pairs
                .filter(|(own, theirs)| **own != *theirs)
                .map(|((name, value), _)| format!(" {name}={value}"))
                .collect::<Vec<String>>()
        };
        let nearest = BUNDLES
            .iter()
            .map(|(name, bundle)| (name, differences(bundle)))
            .min_by_key(|(_, differences)| differences.len());
        let (name, differences) = nearest.unwrap_or((&"documented", Vec::new()));
        write!(formatter, "{name}{}", differences.concat())
    }
}

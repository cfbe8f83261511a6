//! Every form of every secret, in small letters and in the order of its bytes, and a filter that tells
//! at once that none begins at a place.
//!
//! A filter and a sorted list, instead of an automaton over all forms: it takes megabytes where an
//! automaton takes hundreds, is built in milliseconds (each exec has secrets of its own), costs the
//! same for one secret as for a thousand, and its memory can be wiped.

use std::ops::Range;

use zeroize::Zeroizing;

/// The first bytes of a needle, which the filter knows. No needle is shorter.
pub(crate) const HEAD: usize = 8;
/// All needles together.
const BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Copy)]
struct Span {
    begin: u32,
    end: u32,
    label: u32,
}

pub(crate) struct Needles {
    bytes: Zeroizing<Vec<u8>>,
    spans: Vec<Span>,
    filter: Filter,
    longest: usize,
}

/// Needles that begin alike, as indices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alike {
    low: u32,
    high: u32,
}

impl Alike {
    pub(crate) const NONE: Self = Self { low: 0, high: 0 };

    pub(crate) fn is_empty(self) -> bool {
        self.low >= self.high
    }

    fn range(self) -> Range<usize> {
        self.low as usize..self.high as usize
    }
}

impl Needles {
    pub(crate) fn none() -> Self {
        Self {
            bytes: Zeroizing::default(),
            spans: Vec::new(),
            filter: Filter::of(0, std::iter::empty()),
            longest: 0,
        }
    }

    /// None if they are too many. Of two equal ones the first stays.
    pub(crate) fn sorted(mut all: Vec<(Zeroizing<Vec<u8>>, u32)>) -> Option<Self> {
        all.retain(|(bytes, _)| bytes.len() >= HEAD);
        all.iter_mut()
            .for_each(|(bytes, _)| bytes.make_ascii_lowercase());
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.dedup_by(|(one, _), (other, _)| one == other);
        let total = all.iter().map(|(bytes, _)| bytes.len()).sum();
        if total > BYTES_MAX {
            return None;
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(total));
        let mut spans = Vec::with_capacity(all.len());
        for (needle, label) in &all {
            let begin = u32::try_from(bytes.len()).ok()?;
            bytes.extend_from_slice(needle);
            let end = u32::try_from(bytes.len()).ok()?;
            spans.push(Span {
                begin,
                end,
                label: *label,
            });
        }
        let heads = all
            .iter()
            .filter_map(|(bytes, _)| bytes.first_chunk::<HEAD>());
        let filter = Filter::of(all.len(), heads);
        let longest = all.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        Some(Self {
            bytes,
            spans,
            filter,
            longest,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// For a set that is made of others.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.spans.iter().map(|span| (self.slice(span), span.label))
    }

    fn slice(&self, span: &Span) -> &[u8] {
        &self.bytes[span.begin as usize..span.end as usize]
    }

    pub(crate) fn all(&self) -> Alike {
        let high = u32::try_from(self.spans.len()).unwrap_or(u32::MAX);
        Alike { low: 0, high }
    }

    /// Of those that are alike in their first `depth` bytes: those that go on with `byte`, small or
    /// capital, and the label of the one that thereby is complete.
    pub(crate) fn narrow(&self, alike: Alike, depth: usize, byte: u8) -> (Alike, Option<u32>) {
        let byte = byte.to_ascii_lowercase();
        let spans = &self.spans[alike.range()];
        let next = |span: &Span| self.bytes[span.begin as usize + depth];
        let (mut low, mut high) = match spans {
            // The usual case, once a few bytes are known.
            [only] => (0, usize::from(next(only) == byte)),
            _ => {
                let low = spans.partition_point(|span| next(span) < byte);
                let high = low + spans[low..].partition_point(|span| next(span) == byte);
                (low, high)
            }
        };
        let mut complete = None;
        // The shortest of those that are alike comes first.
        if let Some(first) = spans[low..high].first()
            && first.begin as usize + depth + 1 == first.end as usize
        {
            complete = Some(first.label);
            low += 1;
        }
        high = high.max(low);
        // Both are below a number that is a u32 itself.
        let index = |at: usize| alike.low + u32::try_from(at).unwrap_or(0);
        let narrowed = Alike {
            low: index(low),
            high: index(high),
        };
        (narrowed, complete)
    }
}

/// Two bits of one word for every head: a place where they are not set needs no second look.
pub(crate) struct Filter {
    words: Zeroizing<Vec<u64>>,
    shift: u32,
}

/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Filter {
    fn of<'a>(count: usize, heads: impl Iterator<Item = &'a [u8; HEAD]>) -> Self {
        // 32 bits for each: about one place in three hundred is looked at in vain.
        let words = (count * 32 / 64).next_power_of_two().max(64);
        let mut filter = Self {
            words: Zeroizing::new(vec![0; words]),
            shift: 64 - words.trailing_zeros(),
        };
        for head in heads {
            let (word, bits) = filter.place(head);
            filter.words[word] |= bits;
        }
        filter
    }

    fn place(&self, head: &[u8; HEAD]) -> (usize, u64) {
        // The bit that makes letters small; what else it makes alike is told apart later.
        let head = u64::from_le_bytes(*head) | 0x2020_2020_2020_2020;
        let hash = head.wrapping_mul(SPREAD);
        let bit = |from: u32| 1u64 << ((hash >> from) & 63);
        let word = usize::try_from(hash >> self.shift).unwrap_or(0);
        (word, bit(28) | bit(34))
    }

    pub(crate) fn may_begin(&self, head: &[u8; HEAD]) -> bool {
        let (word, bits) = self.place(head);
        self.words.get(word).is_some_and(|it| it & bits == bits)
    }

    /// The first place where a needle may begin, if there is one.
    pub(crate) fn first(&self, bytes: &[u8]) -> Option<usize> {
        bytes.windows(HEAD).position(|window| {
            window
                .first_chunk()
                .is_some_and(|head| self.may_begin(head))
        })
    }
}

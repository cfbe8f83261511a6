//! Bytes from other bytes.

/// Never more than this, so that slowness is the reader's own.
pub const LONGEST: usize = 32 << 10;

/// xorshift64*: the same inputs for the same seed, on every machine.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// Below `most`; 0 when that is 0.
    pub fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).unwrap_or(1);
        usize::try_from(self.roll() % most).unwrap_or(0)
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    fn byte(&mut self) -> u8 {
        self.roll().to_le_bytes()[0]
    }
}

/// Lengths and offsets live at the edges of their types.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x1ff,
    0x200,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// A few changes to one of `pool`, sometimes with a part of another.
pub fn mutate(dice: &mut Dice, pool: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = dice.one(pool).cloned().unwrap_or_default();
    for _ in 0..=dice.below(4) {
        change(dice, &mut bytes, pool, words);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&[u8]]) {
    let at = dice.below(bytes.len());
    let some = 1 + dice.below(16);
    let end = (at + some).min(bytes.len());
    match dice.below(11) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
        1 if !bytes.is_empty() => bytes[at] = dice.byte(),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let part = bytes[at..end].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, part);
        }
        5 => {
            let word = dice.one(words).copied().unwrap_or(b"/").to_vec();
            bytes.splice(at..at, word);
        }
        6 => {
            let word = dice.one(words).copied().unwrap_or(b"..").to_vec();
            let end = (at + word.len()).min(bytes.len());
            bytes.splice(at..end, word);
        }
        7 => number(dice, bytes, at),
        8 => {
            // In octal, as tar has it.
            let edge = dice.one(&EDGES).copied().unwrap_or(0);
            let end = (at + 12).min(bytes.len());
            bytes.splice(
                at..end,
                format!("{:011o}\0", edge & 0x3_ffff_ffff).into_bytes(),
            );
        }
        9 => {
            let other = dice.one(pool).cloned().unwrap_or_default();
            let from = dice.below(other.len());
            let until = (from + dice.below(1024)).min(other.len());
            bytes.splice(at..at, other[from..until].iter().copied());
        }
        _ => {
            // A whole block of a tar, or anything else that comes in blocks.
            let block = at / 512 * 512;
            let until = (block + 512).min(bytes.len());
            let part = bytes[block..until].to_vec();
            match dice.below(2) {
                0 => drop(bytes.drain(block..until)),
                _ => drop(bytes.splice(block..block, part)),
            }
        }
    }
}

fn number(dice: &mut Dice, bytes: &mut Vec<u8>, at: usize) {
    let edge = dice.one(&EDGES).copied().unwrap_or(0);
    let wide = [1, 2, 4, 8];
    let width = dice.one(&wide).copied().unwrap_or(1);
    let mut number = edge.to_le_bytes()[..width].to_vec();
    if dice.below(2) == 0 {
        number.reverse();
    }
    let end = (at + width).min(bytes.len());
    bytes.splice(at..end, number);
}

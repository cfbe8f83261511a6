//! Base32 of a value that stands anywhere in what was encoded: as with base64, only the characters that
//! come from the value alone are known.

use super::Form;

const ALPHABETS: [&[u8; 32]; 2] = [
    b"abcdefghijklmnopqrstuvwxyz234567",
    b"0123456789abcdefghijklmnopqrstuv",
];
/// Bytes that are encoded together, to eight characters.
const GROUP: usize = 5;

pub(super) fn all(value: &[u8], forms: &mut Vec<Form>) {
    for alphabet in ALPHABETS {
        for before in 0..GROUP {
            let known = |is_end: bool| {
                let mut form = Form::of(value);
                let bits = 8 * (before + value.len());
                let last = if is_end { bits.div_ceil(5) } else { bits / 5 };
                for at in (8 * before).div_ceil(5)..last {
                    form.push(alphabet[usize::from(five_bits(value, 5 * at - 8 * before))]);
                }
                form
            };
            forms.push(known(false));
            let mut end = known(true);
            let filled = (before + value.len()) % GROUP;
            if filled > 0 {
                forms.push(known(true));
                end.extend(&b"======"[..8 - (8 * filled).div_ceil(5)]);
            }
            forms.push(end);
        }
    }
}

/// Those from a bit on; behind the end there are zeros.
fn five_bits(value: &[u8], from: usize) -> u8 {
    let byte = |at: usize| u16::from(value.get(at).copied().unwrap_or(0));
    let two = byte(from / 8) << 8 | byte(from / 8 + 1);
    u8::try_from(two >> (11 - from % 8) & 31).unwrap_or(0)
}

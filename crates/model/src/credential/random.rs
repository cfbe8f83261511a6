//! How random a text looks.

/// Shannon's entropy of its characters, in bits for each.
pub fn entropy_bits(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let all: f64 = counts.iter().copied().map(f64::from).sum();
    let part = |count: &u32| {
        let share = f64::from(*count) / all;
        -share * share.log2()
    };
    counts.iter().filter(|it| **it > 0).map(part).sum()
}

/// `your_password_goes_here` has no digit.
pub fn has_letters_and_digits(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic)
}

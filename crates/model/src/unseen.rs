//! Characters that a reader does not see, or that change what the reader sees of others. An approver
//! judges a text by reading it, and must see that they are there.

/// Whether the character is a control character other than a line feed or a tab, has no width or no
/// ink, looks like a space and is none, or changes the order in which others are shown: Unicode's
/// default ignorable code points, its format characters, its separators of lines, its spaces but the
/// one, and its other blanks.
pub const fn is_unseen(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' => true,
        // Soft hyphen, combining joiner, signs and marks of Arabic and Syriac.
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' => true,
        '\u{890}' | '\u{891}' | '\u{8e2}' => true,
        // Fillers of Hangul, the space of Ogham, vowels of Khmer, selectors of Mongolian.
        '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' => true,
        // Spaces, zero width, marks, separators of lines, embeddings, isolates.
        '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' => true,
        // An empty pattern of Braille, wide space, fillers, selectors of variants, byte order.
        '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => true,
        '\u{ffa0}' | '\u{fff0}'..='\u{fffc}' => true,
        // Number signs of Kaithi, controls of hieroglyphs, a filler of Khitan.
        '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{16fe4}' => true,
        // Shorthand and music; tags and further selectors.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// The text with its unseen characters as `\u{…}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unseen(character) {
            true => shown.extend(character.escape_unicode()),
            false => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_spelled_out_and_the_rest_is_as_it_was() {
        for (text, shown) in [
            ("rm -rf a\u{200b}b", r"rm -rf a\u{200b}b"),
            ("a\x1b[2Jb\u{9b}\r\x07", r"a\u{1b}[2Jb\u{9b}\u{d}\u{7}"),
            (
                "x\u{202e}y\u{2066}z\u{feff}",
                r"x\u{202e}y\u{2066}z\u{feff}",
            ),
            ("rm -rf\u{a0}x\u{3000}", r"rm -rf\u{a0}x\u{3000}"),
            ("\u{e0041}\u{fe0f}\u{3164}", r"\u{e0041}\u{fe0f}\u{3164}"),
            ("zażółć – 工作\tناقوس\n", "zażółć – 工作\tناقوس\n"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}

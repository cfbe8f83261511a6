//! Characters that a reader does not see, or that change what the reader sees of others. Whoever
//! judges a text by reading it must see that they are there.

/// Whether the character is a control character other than a line feed or a tab, has no width or no
/// ink, or changes the order in which others are shown: Unicode's default ignorable code points, its
/// bidirectional controls, its separators of lines, and its blanks that are no spaces.
pub const fn is_unseen(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Soft hyphen, combining joiner, letter mark, fillers of Hangul, vowels of Khmer.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        // Selectors of Mongolian; zero width, marks, separators of lines, embeddings, isolates.
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' => true,
        // An empty pattern of Braille, fillers, selectors of variants, byte order, annotations.
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' => true,
        // Shorthand and music; tags and further selectors.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
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
            ("\u{e0041}\u{fe0f}\u{3164}", r"\u{e0041}\u{fe0f}\u{3164}"),
            ("zażółć – 工作\tناقوس\n", "zażółć – 工作\tناقوس\n"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}

//! A page as text: headings, lists and links are kept, programs and what is hidden are not.
//!
//! Tokens are read one after another and no tree is built: the time is that of the tokenizer, and
//! no nesting, however deep, costs a stack.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use crate::refusal::{Refusal, RefusalCode};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) title: Option<String>,
    pub(super) truncated: bool,
}

/// The tokenizer compares each attribute of a tag with all before it, so a tag can be made to take
/// minutes. Between two pieces the clock is looked at.
const PATIENCE: Duration = Duration::from_secs(2);
const PIECE: usize = 2048;
const TITLE_MOST: usize = 512;
const LINK_MOST: usize = 2048;
const NESTING_MOST: usize = 12;

pub(super) fn readable(html: &str, base: &Url, most: usize) -> Result<Page, Refusal> {
    let began = Instant::now();
    let sink = Sink(RefCell::new(Writer::new(base.clone(), most)));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
        rest = after;
        queue.push_back(StrTendril::from_slice(piece));
        // It stops at the end of each script, as for somebody who would run it.
        while !queue.is_empty() {
            let _ = tokenizer.feed(&queue);
        }
        if tokenizer.sink.0.borrow().full {
            break;
        }
        if began.elapsed() > PATIENCE {
            return Err(Refusal::new(
                RefusalCode::ExtractFailed,
                "the page is made so that reading it takes too long",
            ));
        }
    }
    tokenizer.end();
    Ok(tokenizer.sink.0.into_inner().finish())
}

struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => writer.tag(&tag),
            Token::CharacterTokens(text) => {
                writer.characters(&text);
                TokenSinkResult::Continue
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => TokenSinkResult::Continue,
        }
    }
}

/// What separates the next word from the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nothing,
    Space,
    Line,
    Blank,
}

struct Writer {
    base: Url,
    most: usize,
    text: String,
    gap: Gap,
    /// What the next line begins with.
    bullet: Option<String>,
    /// Numbers of ordered lists, None for others.
    lists: Vec<Option<u32>>,
    preformatted: usize,
    /// The element whose content is not shown, and how many of its name are open.
    hidden: Option<(String, usize)>,
    in_title: bool,
    title: String,
    /// Where the text of the open link begins, and where it leads.
    link: Option<(usize, String)>,
    full: bool,
}

/// Not shown: programs, pictures, what a browser shows in other ways.
const SILENT: &[&str] = &[
    "audio", "canvas", "datalist", "math", "object", "select", "svg", "template", "video",
];
/// A blank line before and after.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "details",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];
/// A line of their own.
const LINES: &[&str] = &[
    "body",
    "caption",
    "dd",
    "div",
    "dt",
    "figcaption",
    "legend",
    "li",
    "option",
    "summary",
    "tr",
];
/// Those that always have an end tag, so that hiding one does not hide the rest of the page.
const CLOSED: &[&str] = &[
    "a", "article", "aside", "b", "button", "details", "dialog", "div", "em", "figure", "footer",
    "form", "header", "i", "label", "main", "nav", "ol", "section", "small", "span", "strong",
    "table", "ul",
];

impl Writer {
    fn new(base: Url, most: usize) -> Self {
        Self {
            base,
            most,
            text: String::new(),
            gap: Gap::Nothing,
            bullet: None,
            lists: Vec::new(),
            preformatted: 0,
            hidden: None,
            in_title: false,
            title: String::new(),
            link: None,
            full: false,
        }
    }

    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let opens = tag.kind == TagKind::StartTag;
        if let Some((hidden, open)) = &mut self.hidden {
            if hidden == name && !tag.self_closing {
                *open = if opens { *open + 1 } else { *open - 1 };
                if *open == 0 {
                    self.hidden = None;
                }
            }
        } else if opens && !tag.self_closing && is_hidden(tag) {
            self.hidden = Some((name.to_owned(), 1));
        } else if opens {
            self.open(tag);
        } else {
            self.close(name);
        }
        // Whether shown or not, the tokenizer must know where these end.
        match (opens, name) {
            (true, "title" | "textarea") => TokenSinkResult::RawData(RawKind::Rcdata),
            (true, "style" | "xmp" | "iframe" | "noembed" | "noframes") => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            (true, "script") => TokenSinkResult::RawData(RawKind::ScriptData),
            (true, "plaintext") => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }

    fn open(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        self.separate(name);
        match name {
            "title" => self.in_title = self.title.is_empty(),
            "style" | "script" | "iframe" | "noembed" | "noframes" => {
                self.hidden = Some((name.to_owned(), 1));
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.bullet = Some(format!("{} ", "#".repeat(level)));
            }
            "ul" | "ol" if self.lists.len() < NESTING_MOST => {
                self.lists.push((name == "ol").then_some(0));
            }
            "li" => {
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                self.bullet = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{indent}{number}. ")
                    }
                    Some(None) | None => format!("{indent}- "),
                });
            }
            "br" => self.gap = self.gap.max(Gap::Line),
            "hr" => {
                self.words("---");
                self.gap = Gap::Blank;
            }
            "td" | "th" if !self.at_line_begin() => self.words("| "),
            "pre" => self.preformatted += 1,
            "img" => {
                if let Some(alt) = attribute(tag, "alt").filter(|it| !it.trim().is_empty()) {
                    self.words(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                self.end_link();
                if let Some(address) = attribute(tag, "href").and_then(|it| self.absolute(it)) {
                    self.link = Some((self.text.len(), address));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "title" => self.in_title = false,
            "a" => self.end_link(),
            "ul" | "ol" => {
                self.lists.pop();
            }
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        self.separate(name);
    }

    fn separate(&mut self, name: &str) {
        // A list inside a list goes on with the next line.
        let nested = matches!(name, "ul" | "ol") && !self.lists.is_empty();
        let gap = if BLOCKS.contains(&name) && !nested {
            Gap::Blank
        } else if LINES.contains(&name) || nested {
            Gap::Line
        } else if matches!(name, "td" | "th") {
            Gap::Space
        } else {
            return;
        };
        self.gap = self.gap.max(gap);
        // A heading or an item without text leaves no mark.
        if gap >= Gap::Line {
            self.bullet = None;
        }
    }

    fn at_line_begin(&self) -> bool {
        self.text.is_empty() || self.gap >= Gap::Line
    }

    fn characters(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.in_title {
            let room = TITLE_MOST.saturating_sub(self.title.len());
            self.title.push_str(&text[..text.floor_char_boundary(room)]);
        } else if self.preformatted > 0 {
            self.write(text);
        } else {
            let blank = |it: char| it.is_ascii_whitespace();
            if text.starts_with(blank) {
                self.gap = self.gap.max(Gap::Space);
            }
            for word in text.split(blank).filter(|it| !it.is_empty()) {
                self.write(word);
                self.gap = Gap::Space;
            }
            if !text.ends_with(blank) && !text.is_empty() {
                self.gap = Gap::Nothing;
            }
        }
    }

    /// Words of ours.
    fn words(&mut self, text: &str) {
        self.write(text);
    }

    fn write(&mut self, text: &str) {
        let between = match (self.text.is_empty(), self.gap) {
            (true, _) | (_, Gap::Nothing) => "",
            (_, Gap::Space) if self.text.ends_with([' ', '\n']) => "",
            (_, Gap::Space) => " ",
            (_, Gap::Line) => "\n",
            (_, Gap::Blank) => "\n\n",
        };
        self.gap = Gap::Nothing;
        self.push(between);
        if let Some(bullet) = self.bullet.take() {
            self.push(&bullet);
        }
        if let Some((from, _)) = &mut self.link
            && self.text.len() > *from
            && self.text[*from..].trim().is_empty()
        {
            // What separates the link from what is before it is no part of it.
            *from = self.text.len();
        }
        let shown = |it: &char| !it.is_control() || matches!(it, '\n' | '\t');
        match text.chars().all(|it| shown(&it)) {
            true => self.push(text),
            false => self.push(&text.chars().filter(shown).collect::<String>()),
        }
    }

    fn push(&mut self, text: &str) {
        let room = self.most.saturating_sub(self.text.len());
        let taken = text.floor_char_boundary(room);
        self.full |= taken < text.len();
        self.text.push_str(&text[..taken]);
    }

    fn end_link(&mut self) {
        let Some((from, address)) = self.link.take() else {
            return;
        };
        let label = self.text.get(from..).unwrap_or_default();
        let trimmed = label.trim_start();
        if trimmed.is_empty() || trimmed.len() > LINK_MOST || self.full {
            return;
        }
        let at = from + label.len() - trimmed.len();
        if trimmed.trim_end() == address {
            return;
        }
        self.text.insert(at, '[');
        self.push("](");
        self.push(&address);
        self.push(")");
    }

    /// Only what could be retrieved in turn.
    fn absolute(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > LINK_MOST {
            return None;
        }
        let mut url = self.base.join(href).ok()?;
        url.set_fragment(None);
        let web = matches!(url.scheme(), "http" | "https");
        (web && url.as_str().len() <= LINK_MOST).then(|| url.into())
    }

    fn finish(mut self) -> Page {
        self.end_link();
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = title.chars().filter(|it| !it.is_control()).collect();
        self.text.truncate(self.text.trim_end().len());
        Page {
            text: self.text,
            title: (!title.is_empty()).then_some(title),
            truncated: self.full,
        }
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    let found = tag.attrs.iter().find(|it| &*it.name.local == name)?;
    Some(&found.value)
}

/// What a browser does not show, nobody who looks at the page can have meant to be read.
fn is_hidden(tag: &Tag) -> bool {
    let name: &str = &tag.name;
    if SILENT.contains(&name) {
        return true;
    }
    if !CLOSED.contains(&name) {
        return false;
    }
    let style = attribute(tag, "style").unwrap_or_default();
    let style: String = style
        .chars()
        .filter(|it| !it.is_whitespace())
        .map(|it| it.to_ascii_lowercase())
        .collect();
    attribute(tag, "hidden").is_some()
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tags as they should be and as they should not, and text between them.
    fn soup() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                "<a href=/x>",
                "</a>",
                "<a href='",
                "<ul>",
                "</ul>",
                "<ol>",
                "</ol>",
                "<li>",
                "</li>",
                "<h1>",
                "</h1>",
                "<h6>",
                "<pre>",
                "</pre>",
                "<br>",
                "<hr>",
                "<td>",
                "<th>",
                "<tr>",
                "<div hidden>",
                "</div>",
                "<svg>",
                "</svg>",
                "<svg/>",
                "<script>",
                "</script>",
                "<title>",
                "</title>",
                "<style>",
                "<!--",
                "-->",
                "<img alt=\u{e9}>",
                "&amp;",
                "&#0;",
                "<textarea>",
                "<plaintext>",
                "<![CDATA[",
                "<p",
                "=\"",
                ">",
                "<",
                "\0",
            ])
            .prop_map(str::to_owned),
            "\\PC{0,6}",
            "[ \n\t]{0,3}",
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|it| it.concat())
    }

    proptest! {
        #[test]
        fn any_soup_becomes_text_within_the_limit(html in soup(), most in 0usize..200) {
            let base = Url::parse("https://e.com/a/b").unwrap();
            let page = readable(&html, &base, most).unwrap();
            // The sign that begins a link is set when its end is known.
            prop_assert!(page.text.len() <= most + 1);
            let obeyed = |it: char| it.is_control() && it != '\n' && it != '\t';
            prop_assert!(!page.text.contains(obeyed));
            let whole = readable(&html, &base, usize::MAX).unwrap();
            prop_assert!(!whole.truncated);
        }
    }
}

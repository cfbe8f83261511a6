//! What a person would see on a session's terminal, and the answers that terminals give to programs.

mod sequences;

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_api::SessionScreen;
use glovebox_model::TerminalSize;
use vt100::{Callbacks, Parser, Screen as Grid};

use super::keys::KeyModes;
use sequences::Sequences;

/// A title is a line for people.
const TITLE_MOST: usize = 256;
/// A program that asks without reading the answers is not answered without end. A pipe takes so much
/// whole or not at all: no answer is sent in part.
const ANSWERS_MOST: usize = 4096;
const _: () = assert!(ANSWERS_MOST <= rustix::pipe::PIPE_BUF);

/// A terminal without a window.
pub(super) struct Screen {
    parser: Parser<Window>,
    size: TerminalSize,
    sequences: Sequences,
}

/// What the program said to the window, and asked of it.
#[derive(Default)]
struct Window {
    title: String,
    answers: Vec<u8>,
}

impl Window {
    fn answer(&mut self, text: &str) {
        if self.answers.len() + text.len() <= ANSWERS_MOST {
            self.answers.extend_from_slice(text.as_bytes());
        }
    }
}

impl Callbacks for Window {
    fn set_window_title(&mut self, _: &mut Grid, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        let shown = title.chars().filter(|it| !it.is_control());
        self.title = shown.take(TITLE_MOST).collect();
    }

    fn unhandled_csi(
        &mut self,
        grid: &mut Grid,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let parameter = parameters.first().and_then(|it| it.first()).copied();
        match (first, second, last, parameter.unwrap_or(0)) {
            (None, None, 'n', 5) => self.answer("\x1b[0n"),
            (None | Some(b'?'), None, 'n', 6) => {
                let (row, column) = grid.cursor_position();
                let mark = first.map_or("", |_| "?");
                self.answer(&format!("\x1b[{mark}{};{}R", row + 1, column + 1));
            }
            // A VT100 with advanced video, and nothing that could be asked for more.
            (None, None, 'c', 0) => self.answer("\x1b[?1;2c"),
            (Some(b'>'), None, 'c', 0) => self.answer("\x1b[>0;0;0c"),
            // The mode is not known.
            (Some(b'?'), Some(b'$'), 'p', mode) => self.answer(&format!("\x1b[?{mode};0$y")),
            (None, None, 't', 18) => {
                let (rows, columns) = grid.size();
                self.answer(&format!("\x1b[8;{rows};{columns}t"));
            }
            _ => {}
        }
    }
}

impl Screen {
    pub(super) fn new(size: TerminalSize) -> Self {
        Self {
            parser: empty(size),
            size,
            sequences: Sequences::new(),
        }
    }

    /// Draws output, and adds what the terminal answers to it. `answers`: what was not sent yet.
    pub(super) fn draw(&mut self, bytes: &[u8], answers: &mut Vec<u8>) {
        let whole = self.sequences.whole(bytes, cells(self.size));
        std::mem::swap(answers, &mut self.parser.callbacks_mut().answers);
        let drawn = catch_unwind(AssertUnwindSafe(|| self.parser.process(&whole)));
        std::mem::swap(answers, &mut self.parser.callbacks_mut().answers);
        if drawn.is_err() {
            self.start_anew();
        }
    }

    pub(super) fn resize(&mut self, size: TerminalSize) {
        let (rows, columns) = cells(size);
        self.size = size;
        let resized = catch_unwind(AssertUnwindSafe(|| self.parser.set_size(rows, columns)));
        if resized.is_err() {
            self.start_anew();
        }
    }

    /// Output is the program's, and may be anything: an empty screen is better than no session.
    fn start_anew(&mut self) {
        tracing::error!("a terminal's output could not be drawn");
        self.parser = empty(self.size);
    }

    pub(super) fn modes(&self) -> KeyModes {
        KeyModes {
            application_cursor: self.parser.screen().application_cursor(),
            bracketed_paste: self.parser.screen().bracketed_paste(),
        }
    }

    /// A program has the whole screen.
    pub(super) fn is_within_line(&self) -> bool {
        self.parser.screen().cursor_position().1 > 0
    }

    pub(super) fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    pub(super) fn show(&mut self) -> SessionScreen {
        let shown = catch_unwind(AssertUnwindSafe(|| self.shown()));
        shown.unwrap_or_else(|_| {
            self.start_anew();
            self.shown()
        })
    }

    fn shown(&self) -> SessionScreen {
        let grid = self.parser.screen();
        let (row, column) = grid.cursor_position();
        let lines = grid.rows(0, self.size.columns);
        // The other screen first: leaving the program brings back what was there.
        let alternate = grid.alternate_screen();
        let screen = if alternate { "\x1b[?1049h" } else { "" };
        let redraw = format!("{screen}{}", grid.state_formatted());
        SessionScreen {
            size: self.size,
            lines: lines.map(|line| line.trim_end().to_owned()).collect(),
            cursor: [row, column],
            cursor_hidden: grid.hide_cursor(),
            alternate,
            title: self.parser.callbacks().title.clone(),
            redraw: STANDARD.encode(redraw),
            offset: self.sequences.offset(),
        }
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Screen({:?} at {})", self.size, self.sequences.offset())
    }
}

fn empty(size: TerminalSize) -> Parser<Window> {
    let (rows, columns) = cells(size);
    Parser::new_with_callbacks(rows, columns, 0, Window::default())
}

fn cells(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let at_least_one =
        |it: u16| NonZeroU16::new(it.min(TerminalSize::MOST)).unwrap_or(NonZeroU16::MIN);
    (at_least_one(size.rows), at_least_one(size.columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(screen: &mut Screen, bytes: &[u8]) -> Vec<u8> {
        let mut answers = Vec::new();
        screen.draw(bytes, &mut answers);
        answers
    }

    #[test]
    fn questions_of_programs_are_answered() {
        let mut screen = Screen::new(TerminalSize::USUAL);
        assert_eq!(answers(&mut screen, b"ab\r\ncd\x1b[6n"), b"\x1b[2;3R");
        assert_eq!(
            answers(&mut screen, b"\x1b[5n\x1b[c\x1b[>c"),
            b"\x1b[0n\x1b[?1;2c\x1b[>0;0;0c"
        );
        assert_eq!(answers(&mut screen, b"\x1b[18t"), b"\x1b[8;24;80t");
        // What would read the clipboard or a title back is not answered at all.
        let unanswered = b"\x1b]52;c;?\x07\x1b[21t\x1b]11;?\x07";
        assert_eq!(answers(&mut screen, unanswered), b"");
        // What was not sent yet counts, and each answer is whole.
        let mut unsent = Vec::new();
        for _ in 0..10 {
            screen.draw(&b"\x1b[6n".repeat(1000), &mut unsent);
            assert!(unsent.len() <= ANSWERS_MOST);
        }
        assert!(unsent.len() > ANSWERS_MOST - 10 && unsent.ends_with(b"R"));
        assert!(unsent.starts_with(b"\x1b[2;3R"));
    }

    #[test]
    fn the_screen_is_what_a_person_sees_and_can_be_drawn_again() {
        let size = TerminalSize {
            columns: 20,
            rows: 4,
        };
        let mut screen = Screen::new(size);
        answers(&mut screen, b"one\r\n\x1b[1mtwo\x1b[0m\x1b]2;a title\x07");
        answers(&mut screen, b"\x1b[?1h\x1b[?2004h");
        let shown = screen.show();
        assert_eq!(shown.lines, ["one", "two", "", ""]);
        assert_eq!(shown.cursor, [1, 3]);
        assert!(!shown.alternate);
        assert!(screen.modes().application_cursor && screen.modes().bracketed_paste);
        let mut again = Screen::new(size);
        answers(&mut again, &STANDARD.decode(&shown.redraw).unwrap());
        assert_eq!(again.show().lines, shown.lines);
        assert_eq!(again.modes(), screen.modes());
        answers(&mut screen, b"\x1b[?1049h\x1b[2Jfull");
        assert!(screen.show().alternate);
        screen.resize(TerminalSize::USUAL);
        assert_eq!(screen.show().lines.len(), 24);
    }

    fn picture(shown: &SessionScreen) -> (&[String], [u16; 2], &str) {
        (&shown.lines, shown.cursor, &shown.redraw)
    }

    #[test]
    fn a_picture_and_the_output_from_its_offset_on_are_the_whole_screen() {
        let size = TerminalSize {
            columns: 30,
            rows: 6,
        };
        let output = [
            "élève 😀 \x1b[38;5;200mpink\x1b[0m\r\n\x1b]0;a title; é\x07plain \x1b[1",
            "\r\n;4mbold\x1b[22m\x1b(B lines \x1b[4;7Hthere\x1b[K\x1b[2D",
            "\x1bP1$qm\u{9c}\x1b\\after \x1b_Gi=1;AAAA\x1b\\é\x1b[?2004h\x1b[48;2;1;2;3m",
            "x\x1b[1;2\x18cancelled \x1b[?1049h\x1b[Hsecond\x1b[?25l ż€",
        ]
        .concat();
        let output = [output.as_bytes(), b"\xe9 latin \xff\x82.\xe2\x82\x1b[3m."].concat();
        let mut whole = Screen::new(size);
        answers(&mut whole, &output);
        let whole = whole.show();
        assert_eq!(whole.offset, output.len() as u64);
        assert!(whole.lines[0].starts_with("second ż€"), "{whole:?}");
        let mut torn = 0;
        for cut in 0..=output.len() {
            let mut screen = Screen::new(size);
            answers(&mut screen, &output[..cut]);
            let shown = screen.show();
            let from = usize::try_from(shown.offset).unwrap();
            assert!(from <= cut && cut - from < 20, "{from} of {cut}");
            let mut again = Screen::new(size);
            answers(&mut again, &STANDARD.decode(&shown.redraw).unwrap());
            assert_eq!(picture(&again.show()), picture(&shown), "at {cut}");
            answers(&mut again, &output[from..]);
            assert_eq!(picture(&again.show()), picture(&whole), "cut at {cut}");
            let mut late = Screen::new(size);
            answers(&mut late, &STANDARD.decode(&shown.redraw).unwrap());
            answers(&mut late, &output[cut..]);
            torn += usize::from(picture(&late.show()) != picture(&whole));
            // Nor is anything lost by the cut itself.
            answers(&mut screen, &output[cut..]);
            assert_eq!(picture(&screen.show()), picture(&whole), "cut at {cut}");
        }
        // From where it was cut, what follows the picture is often another screen.
        assert!(torn > 20, "{torn}");
    }

    #[test]
    fn a_character_may_come_in_parts() {
        let text = "élève €😀l";
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut screen = Screen::new(TerminalSize::USUAL);
                answers(&mut screen, &text.as_bytes()[..cut]);
                answers(&mut screen, &text.as_bytes()[cut..second]);
                answers(&mut screen, &text.as_bytes()[second..]);
                assert_eq!(screen.show().lines[0], text, "{cut} {second}");
            }
        }
        // The emulator alone loses the letter that follows.
        let mut emulator = empty(TerminalSize::USUAL);
        emulator.process(&text.as_bytes()[..1]);
        emulator.process(&text.as_bytes()[1..]);
        assert!(emulator.screen().contents().starts_with("éève"));
    }

    /// A title that never ends is not kept whole.
    #[test]
    fn a_sequence_without_an_end_takes_no_memory() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        for begin in ["\x1b]0;", "\x1bP", "\x1b[", "\x1b_"] {
            let mut screen = Screen::new(TerminalSize::USUAL);
            answers(&mut screen, begin.as_bytes());
            let (before, piece) = (resident(), vec![b'1'; 1 << 16]);
            for _ in 0..512 {
                answers(&mut screen, &piece);
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 16 << 20, "{begin:?}: {grown}");
        }
    }
}

//! Lines over time, or over whatever else grows, as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 280.0;
/// Room for the numbers at the left, and for the words above and below.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
/// The first eight are told apart also by those who see fewer colours.
const COLOURS: [&str; 12] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#5a6b7b",
    "#8c564b", "#1b1b1b", "#bcbd22", "#e7298a",
];

/// How the texts of a picture that stands alone look.
const STYLE: &str = "text { font: 12px system-ui, sans-serif; fill: #5a6b7b } \
                     .title { font-size: 15px; font-weight: 600; fill: #1c2733 }";
/// How wide a letter of a legend is, about.
const LETTER: f64 = 7.0;

/// Lines over the same time.
pub struct Plot<'a> {
    /// What it shows.
    pub title: &'a str,
    /// In which unit.
    pub unit: &'a str,
    /// Over what: the unit of what grows to the right.
    pub across: &'a str,
    /// The lines.
    pub lines: Vec<Line>,
    /// What was done when.
    pub bands: &'a [Band<'a>],
}

/// One line; lines of one name have one colour.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is of.
    pub name: String,
    /// Whether it belongs to another of the same name.
    pub dashed: bool,
    /// Seconds, or what else grows to the right, and values.
    pub points: Vec<(f64, f64)>,
}

/// A span of time with a name.
pub struct Band<'a> {
    /// What was done.
    pub name: &'a str,
    /// From when.
    pub begin: f64,
    /// Until when.
    pub end: f64,
}

impl Plot<'_> {
    /// The plot under its title, as a part of a page; nothing if there is nothing to show.
    pub(crate) fn draw(&self) -> String {
        let Some(drawn) = self.drawn() else { return String::new() };
        let title = escaped(self.title);
        format!(
            "<h2>{title}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{title}\">\n{drawn}</svg>\n{}",
            self.legend()
        )
    }

    /// The plot with its title and legend as a picture that stands alone; `None` if there is nothing to
    /// show.
    pub fn svg(&self) -> Option<String> {
        const HEAD: f64 = 24.0;
        const FOOT: f64 = 24.0;
        let drawn = self.drawn()?;
        let height = HEAD + HEIGHT + FOOT;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\">\n\
             <style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text class=\"title\" x=\"8\" y=\"17\">{}</text>\n\
             <g transform=\"translate(0 {HEAD})\">\n{drawn}</g>\n",
            escaped(self.title)
        );
        let (mut x, y) = (LEFT, height - 8.0);
        for line in self.named_lines() {
            let (colour, name) = (self.colour(line), escaped(&line.name));
            let _ = writeln!(
                text,
                "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{:.0}\" y=\"{y:.0}\">{name}</text>",
                y - 9.0,
                x + 15.0
            );
            x += 35.0 + LETTER * line.name.len() as f64;
        }
        text.push_str("</svg>\n");
        Some(text)
    }

    /// Everything within the frame; nothing if there is nothing to show.
    fn drawn(&self) -> Option<String> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let last = points().map(|point| point.0).fold(0.0, f64::max);
        if points().next().is_none() || last <= 0.0 {
            return None;
        }
        let ends = self.bands.iter().map(|band| band.end);
        let across = Scale { to: ends.fold(last, f64::max), length: WIDTH - LEFT - RIGHT };
        let highest = points().map(|point| point.1).fold(0.0, f64::max);
        let step = round_step(highest / 4.0);
        let up =
            Scale { to: (highest / step).ceil().max(1.0) * step, length: HEIGHT - TOP - BOTTOM };
        let mut text = String::new();
        self.draw_bands(&mut text, &across);
        self.draw_grid(&mut text, &up, step);
        self.draw_across(&mut text, &across);
        for line in self.lines.iter().filter(|line| !line.points.is_empty()) {
            draw_line(&mut text, line, &across, &up, self.colour(line));
        }
        Some(text)
    }

    /// The lines that a legend names.
    fn named_lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.dashed && !line.points.is_empty())
    }

    fn draw_bands(&self, text: &mut String, across: &Scale) {
        for (place, band) in self.bands.iter().enumerate() {
            let begin = LEFT + across.at(band.begin);
            let width = across.at(band.end) - across.at(band.begin);
            let fill = if place % 2 == 0 { "#f4f6f8" } else { "#fff" };
            let height = HEIGHT - TOP - BOTTOM;
            let _ = writeln!(
                text,
                "<rect x=\"{begin:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>"
            );
            if width > 7.0 * band.name.len() as f64 {
                let name = escaped(band.name);
                let _ = writeln!(
                    text,
                    "<text x=\"{:.1}\" y=\"{}\">{name}</text>",
                    begin + 4.0,
                    TOP - 8.0
                );
            }
        }
    }

    fn draw_grid(&self, text: &mut String, up: &Scale, step: f64) {
        let lines = (up.to / step).round() as u32;
        for line in 0..=lines {
            let value = f64::from(line) * step;
            let y = HEIGHT - BOTTOM - up.at(value);
            let end = WIDTH - RIGHT;
            let number = number(value, step);
            let unit = if line == lines { self.unit } else { "" };
            let _ = writeln!(
                text,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{end}\" y2=\"{y:.1}\" stroke=\"#d5dce3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number} {unit}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
    }

    fn colour(&self, line: &Line) -> &'static str {
        let mut names = self.lines.iter().filter(|line| !line.dashed).map(|line| &line.name);
        let place = names.position(|name| *name == line.name).unwrap_or(COLOURS.len() - 1);
        COLOURS[place % COLOURS.len()]
    }

    fn legend(&self) -> String {
        let mut text = "<p class=\"about\">".to_owned();
        for line in self.named_lines() {
            let colour = self.colour(line);
            let name = escaped(&line.name);
            let _ = write!(text, "<span style=\"color:{colour}\">&#9632;</span> {name} &nbsp; ");
        }
        text + "</p>\n"
    }

    fn draw_across(&self, text: &mut String, across: &Scale) {
        let unit = escaped(self.across);
        let step = round_step(across.to / 8.0);
        let mut at = 0.0;
        while at <= across.to {
            let x = LEFT + across.at(at);
            let y = HEIGHT - 6.0;
            let number = number(at, step);
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{number} {unit}</text>"
            );
            at += step;
        }
    }
}

/// A text as HTML and XML have it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// From values to places.
struct Scale {
    /// The value at the end.
    to: f64,
    length: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        value / self.to * self.length
    }
}

fn draw_line(text: &mut String, line: &Line, across: &Scale, up: &Scale, colour: &str) {
    let places: Vec<String> = line
        .points
        .iter()
        .map(|(second, value)| {
            format!("{:.1},{:.1}", LEFT + across.at(*second), HEIGHT - BOTTOM - up.at(*value))
        })
        .collect();
    let dashes = if line.dashed { " stroke-dasharray=\"5 4\" opacity=\"0.7\"" } else { "" };
    let _ = writeln!(
        text,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>",
        places.join(" ")
    );
}

/// The least of 1, 2, 5, 10, 20, … and their tenths that is not less.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// A number with as many digits as its steps need.
fn number(value: f64, step: f64) -> String {
    let digits = if step >= 1.0 { 0 } else { (-step.log10().floor()).min(6.0) as usize };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::{Band, Line, Plot, escaped, number, round_step};

    #[test]
    fn steps_are_round() {
        let cases = [
            (0.7, 1.0),
            (1.0, 1.0),
            (1.3, 2.0),
            (3.0, 5.0),
            (7.0, 10.0),
            (0.03, 0.05),
            (260.0, 500.0),
        ];
        for (least, step) in cases {
            assert!(
                (round_step(least) / step - 1.0).abs() < 1e-9,
                "{least}: {}",
                round_step(least)
            );
        }
        assert_eq!((number(1.5, 0.5), number(20.0, 10.0)), ("1.5".into(), "20".into()));
    }

    #[test]
    fn a_line_is_drawn_within_its_frame() {
        let line = |name: &str, dashed| Line {
            name: name.into(),
            dashed,
            points: vec![(0.0, 0.0), (10.0, 40.0)],
        };
        let bands = [Band { name: "load", begin: 0.0, end: 10.0 }];
        let lines = vec![line("get", false), line("get", true)];
        let plot = Plot { title: "A < B", unit: "ms", across: "s", lines, bands: &bands };
        let drawn = plot.draw();
        assert!(drawn.contains("64.0,256.0 948.0,26.0"), "{drawn}");
        assert!(
            drawn.contains("<h2>A &lt; B</h2>")
                && drawn.contains("40 ms")
                && drawn.contains("stroke-dasharray")
        );
        let alone = plot.svg().expect("there is something to show");
        assert!(alone.starts_with("<svg xmlns="), "{alone}");
        assert!(
            alone.contains("64.0,256.0 948.0,26.0") && alone.contains("10 s</text>"),
            "{alone}"
        );
        assert_eq!(alone.matches(">get</text>").count(), 1, "it is named once: {alone}");
    }

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }

    #[test]
    fn without_points_there_is_no_plot() {
        let plot = Plot { title: "a", unit: "", across: "s", lines: Vec::new(), bands: &[] };
        assert_eq!((plot.draw(), plot.svg()), (String::new(), None));
    }
}

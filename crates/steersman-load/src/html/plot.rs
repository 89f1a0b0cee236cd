//! Lines over time, as SVG.

use std::fmt::Write as _;

use super::escaped;

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

/// Lines over the same time.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    pub(super) lines: Vec<Line>,
    /// What was done when.
    pub(super) bands: &'a [Band<'a>],
}

/// One line; lines of one name have one colour.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) dashed: bool,
    /// Seconds and values.
    pub(super) points: Vec<(f64, f64)>,
}

/// A span of time with a name.
pub(super) struct Band<'a> {
    pub(super) name: &'a str,
    pub(super) begin: f64,
    pub(super) end: f64,
}

impl Plot<'_> {
    /// The plot under its title; nothing if there is nothing to show.
    pub(super) fn draw(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let last = points().map(|point| point.0).fold(0.0, f64::max);
        if points().next().is_none() || last <= 0.0 {
            return String::new();
        }
        let ends = self.bands.iter().map(|band| band.end);
        let across = Scale { to: ends.fold(last, f64::max), length: WIDTH - LEFT - RIGHT };
        let highest = points().map(|point| point.1).fold(0.0, f64::max);
        let step = round_step(highest / 4.0);
        let up =
            Scale { to: (highest / step).ceil().max(1.0) * step, length: HEIGHT - TOP - BOTTOM };
        let mut text = format!(
            "<h2>{}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(self.title),
            escaped(self.title)
        );
        self.draw_bands(&mut text, &across);
        self.draw_grid(&mut text, &up, step);
        draw_seconds(&mut text, &across);
        for line in self.lines.iter().filter(|line| !line.points.is_empty()) {
            draw_line(&mut text, line, &across, &up, self.colour(line));
        }
        text.push_str("</svg>\n");
        text.push_str(&self.legend());
        text
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
        for line in self.lines.iter().filter(|line| !line.dashed && !line.points.is_empty()) {
            let colour = self.colour(line);
            let name = escaped(&line.name);
            let _ = write!(text, "<span style=\"color:{colour}\">&#9632;</span> {name} &nbsp; ");
        }
        text + "</p>\n"
    }
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

fn draw_seconds(text: &mut String, across: &Scale) {
    let step = round_step(across.to / 8.0);
    let mut second = 0.0;
    while second <= across.to {
        let x = LEFT + across.at(second);
        let y = HEIGHT - 6.0;
        let number = number(second, step);
        let _ =
            writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{number} s</text>");
        second += step;
    }
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
    use super::{Band, Line, Plot, number, round_step};

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
        let drawn = Plot { title: "A < B", unit: "ms", lines, bands: &bands }.draw();
        assert!(drawn.contains("64.0,256.0 948.0,26.0"), "{drawn}");
        assert!(
            drawn.contains("<h2>A &lt; B</h2>")
                && drawn.contains("40 ms")
                && drawn.contains("stroke-dasharray")
        );
    }

    #[test]
    fn without_points_there_is_no_plot() {
        assert_eq!(Plot { title: "a", unit: "", lines: Vec::new(), bands: &[] }.draw(), "");
    }
}

//! What a person is shown.

/// JSON with what a person would not see, see elsewhere, or take for a blank, written as its number.
pub fn visible(json: &str) -> String {
    let is_plain = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace() || hides(c));
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_plain(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Characters without a shape of their own: fillers, joiners, selectors, and those that turn the direction of text.
fn hides(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_as_its_number() {
        let shown = visible("a b\u{3164}\u{34f}\u{115f}\u{2800}\u{180b}\u{17b4}\u{a0}\u{2000}\u{3000}\u{1d173}é");
        let numbers = "\\u3164\\u034f\\u115f\\u2800\\u180b\\u17b4\\u00a0\\u2000\\u3000\\ud834\\udd73";
        assert_eq!(shown, format!("a b{numbers}é"));
    }
}

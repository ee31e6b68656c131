//! What a person is shown.

/// JSON with what a person would not see, or see elsewhere, written as its number.
pub fn visible(json: &str) -> String {
    let is_plain = |c: char| {
        let hides = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}');
        !c.is_control() && !hides
    };
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

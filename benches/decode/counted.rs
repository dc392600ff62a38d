//! Decodes a case so many times; benches/instructions.py counts what that takes.
//!
//! Without arguments: the cases, one a line, with the rows and bytes of a round.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a bench may stop at the first fault

mod cases;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let (Some(name), Some(rounds)) = (arguments.next(), arguments.next()) else {
        for case in cases::cases() {
            println!("{}\t{}\t{}", case.name, case.rows(), case.bytes());
        }
        return;
    };
    let rounds: u32 = rounds.parse().expect("a number of rounds");
    let cases = cases::cases();
    let case = cases.iter().find(|case| case.name == name).expect("a case");
    for _ in 0..rounds {
        case.round(case.bodies());
    }
}

/// A copy of something with one place changed.
pub struct Mutant {
    /// The name of the mutant: a claim about what the broken code does.
    pub name: &'static str,
    /// Names the clause that the change breaks.
    pub clause: &'static str,
    /// Names the file, below the sources.
    pub file: &'static str,
    /// Holds the text that is replaced. It stands in the file once, in the body of a function.
    pub find: &'static str,
    /// Holds the text that replaces it.
    pub replace: &'static str,
}

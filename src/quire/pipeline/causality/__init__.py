"""What happened before what: vector times for every event of a trace, and the questions that people ask of them."""

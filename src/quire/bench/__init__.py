"""Speed of live groups beside what one would write without Quire, in the same run."""

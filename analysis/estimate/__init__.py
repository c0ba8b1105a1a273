"""How likely one design is to lose data: counted, or by its likeliest paths where losses are rare; and in a year."""

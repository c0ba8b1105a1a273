"""P(data loss) of one design: counted, or by its likeliest paths where losses are rare; and in a year."""

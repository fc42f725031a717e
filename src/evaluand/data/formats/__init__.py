"""The formats of files with rows, one module each, found by suffix (entry point group `evaluand.formats`).

delimited.py     CSV and TSV
json_rows.py     JSON lines and JSON arrays
columnar.py      Parquet and Arrow
workbook.py      workbooks of Excel and LibreOffice
"""

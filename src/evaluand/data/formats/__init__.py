"""The formats of files with rows, one module each, found by suffix (entry point group `evaluand.formats`).

delimited.py     CSV and TSV
json_rows.py     JSON lines and JSON arrays
columnar.py      Parquet and Arrow
workbook.py      workbooks of Excel and LibreOffice
arff.py          ARFF of Weka and OpenML
croissant.py     Croissant descriptions
data_package.py  Data Packages with their Table Schemas
descriptions.py  what both have in common: files below a folder, checksums, declared types, roles, limits
publishing.py    writes both
"""

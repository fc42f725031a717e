"""Object detection: boxes, which of them match, and the average precision of what was found.

    boxes       columns of boxes, read from tables, arrays and rows, and checked
    definition  the public definitions of average precision, by name
    matching    which detection finds which true box
    outlines    polygons in place of boxes, and how much they overlap
    masks       pixels in place of boxes, by pycocotools; segments without overlap, and what each class contributes
    precision   recall, precision and their average, for many weightings of the images at once

A detection and a true box can match if they are in the same image and have the same label. Nothing here loops over
boxes or images.
"""
